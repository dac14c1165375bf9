import { Tooltip } from 'radix-ui'
import type { ReactNode } from 'react'

export function Tip({ text, children, side = 'top' }: { text: ReactNode; children: ReactNode; side?: 'top' | 'right' | 'bottom' | 'left' }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>{children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content side={side} sideOffset={5} className="z-[70] max-w-64 animate-fade rounded-md bg-ink px-2 py-1 text-xs text-canvas shadow-lift">{text}</Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}
