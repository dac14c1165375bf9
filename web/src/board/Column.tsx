import { useDroppable } from '@dnd-kit/core'
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { Plus } from 'lucide-react'
import { memo, useRef } from 'react'
import type { Task, TaskStatus } from '@/api/types'
import { cx } from '@/ui/cx'
import { BoardCard } from './BoardCard'
import type { CardProps } from './Card'
import { columnId } from './drag'

interface Props {
  status: TaskStatus
  name: string
  tasks: Task[]
  cardOf: (task: Task) => CardProps
  selected: ReadonlySet<string>
  /** Given where cards may be chosen and moved. */
  onSelect: ((id: string) => void) | undefined
  /** Given where a task may be added. */
  onAdd?: ((status: 'backlog' | 'todo') => void) | undefined
  /** The card at which a dragged one would land. */
  landing: { id: string; side: 'above' | 'below' } | 'here' | undefined
  /** A card of the board is lifted. */
  carrying: boolean
}

const EMPTY: Record<TaskStatus, string> = {
  backlog: 'Ideas for later',
  todo: 'Ready to be given to an agent',
  in_progress: 'Nobody is at work',
  in_review: 'Nothing waits for you',
  done: 'Merged work ends up here',
}
const TINTS: Record<TaskStatus, string> = { backlog: 'bg-faint', todo: 'bg-info', in_progress: 'bg-busy', in_review: 'bg-review', done: 'bg-live' }

const CARD_PX = 112

/**
 * How high a card is, as the browser tells after it has laid out the page. To ask for it
 * at once would make it lay out the page for each card that comes into view.
 */
const heightOf = (card: Element, seen: ResizeObserverEntry | undefined, list: Virtualizer<HTMLDivElement, Element>) => {
  const height = seen?.borderBoxSize[0]?.blockSize
  if (height !== undefined) return Math.round(height)
  const at = list.indexFromElement(card)
  return list.measurementsCache[at]?.size ?? CARD_PX
}

/** One column. Only the cards in view exist, so hundreds cost as much as a dozen. */
export const Column = memo(function Column({ status, name, tasks, cardOf, selected, onSelect, onAdd, landing, carrying }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  const drop = useDroppable({ id: columnId(status) })
  const list = useVirtualizer({
    count: tasks.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => CARD_PX,
    getItemKey: (i) => tasks[i]?.id ?? i,
    gap: 8,
    overscan: 4,
    measureElement: heightOf,
    paddingStart: 2,
    paddingEnd: 12,
  })
  return (
    <section aria-label={`${name}, ${tasks.length} tasks`} data-column={status} className={cx('flex h-full w-[84vw] shrink-0 snap-center flex-col rounded-xl bg-sunken transition-colors sm:w-72 sm:snap-align-none lg:w-auto lg:min-w-44 lg:flex-1 lg:shrink', landing && 'ring-2 ring-accent/40')}>
      <header className="flex h-10 shrink-0 items-center gap-2 px-3">
        <span aria-hidden className={cx('size-2 rounded-full', TINTS[status])} />
        <h2 className="text-sm font-semibold">{name}</h2>
        <span className="tabular rounded-full bg-hover px-1.5 text-2xs font-medium text-muted">{tasks.length}</span>
        {onAdd && <button type="button" aria-label={`Add a task to ${name}`} onClick={() => onAdd(status === 'backlog' ? 'backlog' : 'todo')} className="ml-auto rounded-md p-1 text-faint hover:bg-hover hover:text-ink"><Plus aria-hidden className="size-4" /></button>}
      </header>
      <div
        ref={(node) => { scroller.current = node; drop.setNodeRef(node) }} tabIndex={-1}
        className="min-h-0 flex-1 overflow-x-hidden overflow-y-auto px-2"
      >
        {tasks.length === 0 && <p className={cx('mt-1 rounded-lg border border-dashed border-line-strong/60 px-3 py-7 text-center text-xs text-pretty text-muted', landing === 'here' && 'border-accent')}>{EMPTY[status]}</p>}
        <div className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const task = tasks[item.index]
            if (!task) return null
            return (
              <div key={item.key} data-index={item.index} ref={list.measureElement} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${item.start}px)` }}>
                <BoardCard
                  {...cardOf(task)} selected={selected.has(task.id)} selecting={selected.size > 0} onSelect={onSelect} carrying={carrying}
                  mark={typeof landing === 'object' && landing.id === task.id ? landing.side : undefined}
                />
              </div>
            )
          })}
        </div>
      </div>
    </section>
  )
})
