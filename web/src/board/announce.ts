import type { Announcements } from '@dnd-kit/core'
import type { Task } from '@/api/types'
import { isColumn } from './drag'
import { columnName } from './order'

/** What a screen reader hears while a card is carried. */
export function announcements(taskById: Map<string, Task>) {
  const name = (id: string | number) => taskById.get(String(id))?.title ?? 'the card'
  const place = (id: string | number) => {
    if (isColumn(id)) return columnName(String(id).slice('column:'.length) as Task['status'])
    const task = taskById.get(String(id))
    return task ? `${columnName(task.status)}, next to ${task.title}` : 'nowhere'
  }
  const spoken: Announcements = {
    onDragStart: ({ active }) => `Lifted ${name(active.id)}.`,
    onDragOver: ({ active, over }) => (over ? `${name(active.id)} is over ${place(over.id)}.` : undefined),
    onDragEnd: ({ active, over }) => (over ? `${name(active.id)} was put into ${place(over.id)}.` : `${name(active.id)} went back.`),
    onDragCancel: ({ active }) => `${name(active.id)} went back.`,
  }
  return {
    announcements: spoken,
    screenReaderInstructions: { draggable: 'Press space to lift the card, the arrow keys to move it between places and columns, space to put it down, escape to put it back.' },
  }
}
