import { type RefObject, useEffect, useState } from 'react'
import type { TaskStatus } from '@/api/types'
import { cx } from '@/ui/cx'
import { COLUMNS, type Columns, firstColumn } from './order'

const columnOf = (scroller: HTMLElement | null, status: TaskStatus) => scroller?.querySelector<HTMLElement>(`[data-column=${status}]`)

/** Brings a column to the middle, where columns do not fit side by side. */
function scrollToColumn(scroller: HTMLElement | null, status: TaskStatus, behavior: ScrollBehavior = 'instant') {
  const column = columnOf(scroller, status)
  if (!scroller || !column || scroller.scrollWidth <= scroller.clientWidth) return
  scroller.scrollTo({ left: column.offsetLeft - scroller.offsetLeft - (scroller.clientWidth - column.clientWidth) / 2, behavior })
}

/** The columns by name, on a phone, where one fills the screen. The first to be shown is that in which things happen. */
export function ColumnJump({ columns, scroller }: { columns: Columns; scroller: RefObject<HTMLDivElement | null> }) {
  const [shown, setShown] = useState<TaskStatus>()
  const [first] = useState(() => firstColumn(columns))
  useEffect(() => {
    const root = scroller.current
    if (!root) return undefined
    if (!matchMedia('(min-width: 640px)').matches) scrollToColumn(root, first)
    const watch = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting && target instanceof HTMLElement) setShown(COLUMNS.find(({ status }) => status === target.dataset.column)?.status)
      }
    }, { root, threshold: 0.6 })
    for (const { status } of COLUMNS) {
      const column = columnOf(root, status)
      if (column) watch.observe(column)
    }
    return () => watch.disconnect()
  }, [scroller, first])
  return (
    <nav aria-label="Columns" className="flex shrink-0 gap-1 overflow-x-auto px-3 pt-2 [scrollbar-width:none] sm:hidden">
      {COLUMNS.map(({ status, name }) => (
        <button
          key={status} type="button" aria-current={shown === status ? 'true' : undefined} onClick={() => scrollToColumn(scroller.current, status, 'smooth')}
          className={cx('flex h-8 shrink-0 items-center gap-1.5 rounded-full px-3 text-xs font-medium', shown === status ? 'bg-ink text-canvas' : 'text-muted')}
        >
          {name}<span className="tabular opacity-75">{columns[status].length}</span>
        </button>
      ))}
    </nav>
  )
}
