import { useDraggable, useDroppable } from '@dnd-kit/core'
import { Check, GripVertical } from 'lucide-react'
import { memo, useMemo } from 'react'
import { cx } from '@/ui/cx'
import { Card, type CardProps } from './Card'

interface Props extends CardProps { selected: boolean; selecting: boolean; onSelect: ((id: string) => void) | undefined; mark: 'above' | 'below' | undefined; carrying: boolean }

/** A card that can be lifted: by its whole face with a pointer, by its grip with the keyboard. Without onSelect it is only read. */
export const BoardCard = memo(function BoardCard({ selected, selecting, onSelect, mark, carrying, ...card }: Props) {
  const { id, title } = card.task
  const { setNodeRef, setActivatorNodeRef, attributes, listeners, isDragging } = useDraggable({ id, disabled: !onSelect })
  const corner = useMemo(() => onSelect && (
    <>
      <button
        type="button" role="checkbox" aria-checked={selected} aria-label={`Select ${title}`} onClick={() => onSelect(id)} onPointerDown={(event) => event.stopPropagation()}
        className={cx('relative z-10 flex size-4 items-center justify-center rounded border transition-opacity', selected ? 'border-accent bg-accent text-accent-ink' : 'border-line-strong bg-surface', !selected && !selecting && 'opacity-0 group-hover/card:opacity-100 focus-visible:opacity-100')}
      >
        {selected && <Check aria-hidden className="size-3" strokeWidth={3} />}
      </button>
      <button
        type="button" ref={setActivatorNodeRef} aria-label={`Move ${title}`} aria-describedby={attributes['aria-describedby']} aria-roledescription="draggable"
        className="relative z-10 -mx-0.5 cursor-grab rounded opacity-0 transition-opacity group-hover/card:opacity-100 focus-visible:opacity-100"
      >
        <GripVertical aria-hidden className="size-3.5" />
      </button>
    </>
  ), [selected, selecting, title, id, onSelect, setActivatorNodeRef, attributes])
  return (
    <div
      ref={setNodeRef} {...listeners} data-card={id}
      className={cx('relative touch-manipulation', isDragging && 'opacity-35')}
    >
      {carrying && <Place id={id} />}
      {mark && <span aria-hidden className={cx('absolute inset-x-1 z-20 h-0.5 rounded-full bg-accent', mark === 'above' ? '-top-[5px]' : '-bottom-[5px]')} />}
      <div className={cx('rounded-lg', selected && 'ring-2 ring-accent')}><Card {...card} corner={corner} /></div>
    </div>
  )
})

/**
 * Where another card can be put. It is there only while one is carried: each that comes
 * or goes makes the board render all its cards, which a list that is scrolled cannot afford.
 */
function Place({ id }: { id: string }) {
  const { setNodeRef } = useDroppable({ id })
  return <span aria-hidden ref={setNodeRef} className="pointer-events-none absolute inset-0" />
}
