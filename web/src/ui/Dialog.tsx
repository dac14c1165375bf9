import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { cx } from './cx'

interface Props { open: boolean; onOpenChange: (open: boolean) => void; title: string; about?: ReactNode; children: ReactNode; wide?: boolean; side?: boolean; /** Escape means something to what is inside. */ ownEscape?: boolean }

export function Dialog({ open, onOpenChange, title, about, children, wide, side, ownEscape }: Props) {
  const place = side
    ? 'inset-y-0 right-0 w-full max-w-lg animate-drawer border-l sm:inset-y-2 sm:right-2 sm:rounded-xl sm:border'
    : cx('inset-x-0 bottom-0 max-h-[92dvh] rounded-t-xl border sm:inset-auto sm:top-[12vh] sm:left-1/2 sm:max-h-[76vh] sm:w-full sm:-translate-x-1/2 sm:rounded-xl', wide ? 'sm:max-w-2xl' : 'sm:max-w-md')
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 animate-fade bg-scrim" />
        <Radix.Content className={cx('fixed z-50 flex flex-col overflow-hidden bg-surface shadow-lift focus:outline-none', place)} {...(!about && { 'aria-describedby': undefined })} {...(ownEscape && { onEscapeKeyDown: (event: KeyboardEvent) => event.preventDefault() })}>
          <header className="flex items-start gap-4 px-5 pt-4 pb-2">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-lg font-semibold tracking-tight">{title}</Radix.Title>
              {about && <Radix.Description className="mt-0.5 text-sm text-muted">{about}</Radix.Description>}
            </div>
            <Radix.Close className="-mr-1.5 rounded-md p-1.5 text-faint hover:bg-hover hover:text-ink" aria-label="Close"><X aria-hidden className="size-4" /></Radix.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 pt-2 pb-5">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
