import { AlertDialog } from 'radix-ui'
import { type ReactNode, useState } from 'react'
import { Button } from './Button'
import { ConfirmContext, type Ask } from './confirm'

/** Gives the page `useConfirm`: one question before anything is lost. */
export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [asked, setAsked] = useState<{ ask: Ask; answer: (yes: boolean) => void } | null>(null)
  const confirm = (ask: Ask) => new Promise<boolean>((resolve) => setAsked({ ask, answer: resolve }))
  const close = (yes: boolean) => {
    asked?.answer(yes)
    setAsked(null)
  }
  return (
    <ConfirmContext value={confirm}>
      {children}
      <AlertDialog.Root open={asked !== null} onOpenChange={(open) => !open && close(false)}>
        <AlertDialog.Portal>
          <AlertDialog.Overlay className="fixed inset-0 z-50 animate-fade bg-scrim" />
          <AlertDialog.Content className="fixed inset-x-4 bottom-4 z-50 animate-rise rounded-xl border bg-surface p-5 shadow-lift focus:outline-none sm:inset-auto sm:top-[24vh] sm:left-1/2 sm:w-full sm:max-w-sm sm:-translate-x-1/2">
            <AlertDialog.Title className="text-lg font-semibold tracking-tight">{asked?.ask.title}</AlertDialog.Title>
            <AlertDialog.Description className="mt-1.5 text-sm text-pretty text-muted">{asked?.ask.lost}</AlertDialog.Description>
            <div className="mt-5 flex justify-end gap-2">
              <AlertDialog.Cancel asChild><Button look="quiet">Not now</Button></AlertDialog.Cancel>
              <AlertDialog.Action asChild onClick={() => close(true)}><Button look="danger">{asked?.ask.verb}</Button></AlertDialog.Action>
            </div>
          </AlertDialog.Content>
        </AlertDialog.Portal>
      </AlertDialog.Root>
    </ConfirmContext>
  )
}
