import { type DragEndEvent, type DragMoveEvent, KeyboardSensor, MouseSensor, TouchSensor, useSensor, useSensors } from '@dnd-kit/core'
import { useEffect, useRef, useState } from 'react'
import type { Task, TaskStatus } from '@/api/types'
import { isColumn, landingAt, type Landing, type Point, pointOf, stepByKey } from './drag'
import { type Columns, placeAt } from './order'
import type { Move } from './useMove'

/**
 * The drag of one card: where it would land now, and the move when it is let go.
 * What the last render found under the card is behind a quick hand, so the pointer
 * decides; a card carried by keys has none.
 */
export function useDragBoard(columns: Columns, taskById: Map<string, Task>, onMove: (move: Move) => void) {
  const [lifted, setLifted] = useState<Task>()
  const [landing, setLanding] = useState<Landing>()
  const sensors = useSensors(
    useSensor(MouseSensor, { activationConstraint: { distance: 6 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 220, tolerance: 8 } }),
    useSensor(KeyboardSensor, { coordinateGetter: stepByKey }),
  )
  const point = useRef<Point>(undefined)
  useEffect(() => {
    const see = (event: Event) => { point.current = pointOf(event) }
    const kinds = ['mousedown', 'mousemove', 'mouseup', 'touchstart', 'touchmove']
    for (const kind of kinds) addEventListener(kind, see, { capture: true, passive: true })
    return () => { for (const kind of kinds) removeEventListener(kind, see, { capture: true }) }
  }, [])
  const landingOf = ({ activatorEvent, active, over }: DragMoveEvent) =>
    activatorEvent instanceof KeyboardEvent || !point.current ? landingOver(over, active.rect.current.translated, taskById) : landingAt(point.current, String(active.id))
  const clear = () => {
    setLifted(undefined)
    setLanding(undefined)
  }
  const follow = (event: DragMoveEvent) => {
    const next = landingOf(event)
    setLanding((old) => (old?.status === next?.status && old?.card?.id === next?.card?.id && old?.card?.side === next?.card?.side ? old : next))
  }
  const drop = (event: DragEndEvent) => {
    const task = taskById.get(String(event.active.id))
    const at = landingOf(event)
    clear()
    if (!task || !at) return
    const others = columns[at.status].filter((each) => each.id !== task.id)
    const near = others.findIndex((each) => each.id === at.card?.id)
    const index = near < 0 ? others.length : near + (at.card?.side === 'below' ? 1 : 0)
    const same = at.status === task.status && columns[at.status][index]?.id === task.id
    if (!same) onMove({ task, to: at.status, position: placeAt(columns[at.status], index, task.id) })
  }
  return {
    // A last move may be told after the end: what is not lifted lands nowhere.
    lifted, landing: lifted && landing, sensors,
    handlers: {
      onDragStart: ({ active }: { active: { id: string | number } }) => {
        setLanding(undefined)
        setLifted(taskById.get(String(active.id)))
      },
      onDragMove: follow,
      onDragEnd: drop,
      onDragCancel: clear,
    },
  }
}

type Over = DragMoveEvent['over']
type Box = { top: number; height: number } | null

function landingOver(over: Over, moving: Box, taskById: Map<string, Task>): Landing | undefined {
  if (!over) return undefined
  const id = String(over.id)
  if (isColumn(id)) return { status: id.slice('column:'.length) as TaskStatus }
  const task = taskById.get(id)
  if (!task) return undefined
  const below = moving ? moving.top + moving.height / 2 > over.rect.top + over.rect.height / 2 : false
  return { status: task.status, card: { id, side: below ? 'below' : 'above' } }
}
