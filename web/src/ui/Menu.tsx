import { DropdownMenu } from 'radix-ui'
import type { ReactNode } from 'react'
import { cx } from './cx'

export interface MenuItem { label: string; icon?: ReactNode; onSelect: () => void; danger?: boolean; disabled?: boolean; hint?: string }

export function Menu({ trigger, items, align = 'end' }: { trigger: ReactNode; items: (MenuItem | 'line' | false)[]; align?: 'start' | 'end' }) {
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align={align} sideOffset={4} className="z-50 max-h-[60vh] min-w-44 animate-rise overflow-y-auto rounded-lg border bg-raised p-1 text-sm shadow-lift">
          {items.map((item, i) => {
            if (!item) return null
            if (item === 'line') return <DropdownMenu.Separator key={i} className="mx-1 my-1 h-px bg-line" />
            return (
              <DropdownMenu.Item
                key={item.label}
                disabled={item.disabled ?? false}
                onSelect={item.onSelect}
                className={cx('flex cursor-default items-center gap-2.5 rounded-md px-2 py-1.5 outline-none select-none data-disabled:opacity-45 data-highlighted:bg-hover [&_svg]:size-4', item.danger ? 'text-danger' : 'text-ink [&_svg]:text-faint')}
              >
                {item.icon}
                <span className="flex-1">{item.label}</span>
                {item.hint && <span className="text-xs text-faint">{item.hint}</span>}
              </DropdownMenu.Item>
            )
          })}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
