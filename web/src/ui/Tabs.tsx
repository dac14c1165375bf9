import { Tabs as Radix } from 'radix-ui'
import { type ReactNode, useEffect, useRef } from 'react'

export interface Tab { value: string; label: string; count?: number; icon?: ReactNode }

/** The names of the tabs; on a narrow screen they scroll, and the open one is in view. */
export function TabBar({ tabs, label }: { tabs: Tab[]; label: string }) {
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const node = list.current
    if (!node) return undefined
    const show = () => node.querySelector('[data-state=active]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
    show()
    const watch = new MutationObserver(show)
    watch.observe(node, { subtree: true, attributeFilter: ['data-state'] })
    return () => watch.disconnect()
  }, [])
  return (
    <Radix.List ref={list} aria-label={label} className="flex shrink-0 gap-1 overflow-x-auto border-b px-4 [scrollbar-width:none]">
      {tabs.map((tab) => (
        <Radix.Trigger
          key={tab.value}
          value={tab.value}
          className="-mb-px flex h-10 items-center gap-1.5 border-b-2 border-transparent px-2 text-sm font-medium whitespace-nowrap text-muted transition-colors hover:text-ink focus-visible:-outline-offset-2 data-[state=active]:border-accent data-[state=active]:text-ink [&_svg]:size-4"
        >
          {tab.icon}
          {tab.label}
          {tab.count !== undefined && tab.count > 0 && <span className="tabular rounded-full bg-sunken px-1.5 text-2xs text-muted">{tab.count}</span>}
        </Radix.Trigger>
      ))}
    </Radix.List>
  )
}

export const TabsRoot = Radix.Root
export const TabPanel = Radix.Content
