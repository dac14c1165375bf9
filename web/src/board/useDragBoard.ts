import { type DragEndEvent, type DragMoveEvent, KeyboardSensor, MouseSensor, TouchSensor, useSensor, useSensors } from '@dnd-kit/core'
import { useState } from 'react'
import type { Task, TaskStatus } from '@/api/types'
import { isColumn, stepByKey } from './drag'
import { type Columns, placeAt } from './order'
import type { Move } from './useMove'

export interface Landing { status: TaskStatus; card?: { id: string; side: 'above' | 'below' } }

/** The drag of one card: where it would land now, and the move when it is let go. */
export function useDragBoard(columns: Columns, taskById: Map<string, Task>, onMove: (move: Move) => void) {
  const [lifted, setLifted] = useState<Task>()
  const [landing, setLanding] = useState<Landing>()
  const sensors = useSensors(
    useSensor(MouseSensor, { activationConstraint: { distance: 6 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 220, tolerance: 8 } }),
    useSensor(KeyboardSensor, { coordinateGetter: stepByKey }),
  )
  const clear = () => {
    setLifted(undefined)
    setLanding(undefined)
  }
  const follow = ({ over, active }: DragMoveEvent) => {
    const next = landingOf(over, active.rect.current.translated, taskById)
    setLanding((old) => (old?.status === next?.status && old?.card?.id === next?.card?.id && old?.card?.side === next?.card?.side ? old : next))
  }
  const drop = ({ active, over }: DragEndEvent) => {
    const task = taskById.get(String(active.id))
    const at = landingOf(over, active.rect.current.translated, taskById)
    clear()
    if (!task || !at) return
    const others = columns[at.status].filter((each) => each.id !== task.id)
    const near = others.findIndex((each) => each.id === at.card?.id)
    const index = near < 0 ? others.length : near + (at.card?.side === 'below' ? 1 : 0)
    const same = at.status === task.status && columns[at.status][index]?.id === task.id
    if (!same) onMove({ task, to: at.status, position: placeAt(columns[at.status], index, task.id) })
  }
  return {
    lifted, landing, sensors,
    handlers: {
      onDragStart: ({ active }: { active: { id: string | number } }) => setLifted(taskById.get(String(active.id))),
      onDragMove: follow,
      onDragEnd: drop,
      onDragCancel: clear,
    },
  }
}

type Over = DragMoveEvent['over']
type Box = { top: number; height: number } | null

export function landingOf(over: Over, moving: Box, taskById: Map<string, Task>): Landing | undefined {
  if (!over) return undefined
  const id = String(over.id)
  if (isColumn(id)) return { status: id.slice('column:'.length) as TaskStatus }
  const task = taskById.get(id)
  if (!task) return undefined
  const below = moving ? moving.top + moving.height / 2 > over.rect.top + over.rect.height / 2 : false
  return { status: task.status, card: { id, side: below ? 'below' : 'above' } }
}
