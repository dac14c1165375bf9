import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { count } from '@/format/number'

interface Props<T> { items: T[]; keyOf: (item: T) => string; row: (item: T) => ReactNode; label: string; estimate?: number }

/** A long list that follows its end until the reader scrolls up, and says what came since. */
export function Feed<T>({ items, keyOf, row, label, estimate = 56 }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null)
  const [following, setFollowing] = useState(true)
  const [seen, setSeen] = useState(0)
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: (i) => {
      const item = items[i]
      return item === undefined ? i : keyOf(item)
    },
    overscan: 12,
    paddingStart: 12,
    paddingEnd: 24,
  })
  const total = list.getTotalSize()
  useEffect(() => {
    if (following && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight
  }, [following, total, items.length])
  const onScroll = () => {
    const node = scroller.current
    if (!node) return
    const atEnd = node.scrollHeight - node.scrollTop - node.clientHeight < 48
    if (atEnd !== following) {
      setFollowing(atEnd)
      setSeen(items.length)
    }
  }
  const fresh = following ? 0 : items.length - seen
  return (
    <div className="relative h-full">
      <div ref={scroller} onScroll={onScroll} role="log" aria-label={label} aria-live="off" tabIndex={0} className="h-full overflow-y-auto focus-visible:outline-offset-[-2px]">
        <div className="relative mx-auto max-w-4xl" style={{ height: total }}>
          {list.getVirtualItems().map((virtual) => {
            const item = items[virtual.index]
            return item === undefined ? null : (
              <div key={virtual.key} data-index={virtual.index} ref={list.measureElement} className="absolute inset-x-0 top-0 px-4" style={{ transform: `translateY(${virtual.start}px)` }}>{row(item)}</div>
            )
          })}
        </div>
      </div>
      {!following && (
        <button type="button" onClick={() => setFollowing(true)} className="absolute bottom-4 left-1/2 flex -translate-x-1/2 animate-rise items-center gap-1.5 rounded-full border bg-raised px-3 py-1.5 text-xs font-medium shadow-lift hover:border-line-strong">
          <ArrowDown aria-hidden className="size-3.5" />
          {fresh > 0 ? `${count(fresh, 'new entry', 'new entries')}` : 'Jump to the latest'}
        </button>
      )}
    </div>
  )
}
