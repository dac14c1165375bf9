// Where a dragged card would land, by mouse, finger or keyboard.
import { type CollisionDetection, KeyboardCode, type KeyboardCoordinateGetter, type UniqueIdentifier } from '@dnd-kit/core'
import type { TaskStatus } from '@/api/types'
import { COLUMNS } from './order'

export const columnId = (status: string) => `column:${status}`
export const isColumn = (id: UniqueIdentifier) => String(id).startsWith('column:')

interface Box { left: number; top: number; width: number; height: number }
const middle = (box: Box) => ({ x: box.left + box.width / 2, y: box.top + box.height / 2 })

export interface Point { x: number; y: number }
export interface Landing { status: TaskStatus; card?: { id: string; side: 'above' | 'below' } }

/** Where a mouse or a finger is; undefined for keys. */
export function pointOf(event: Event): Point | undefined {
  if (event instanceof MouseEvent) return { x: event.clientX, y: event.clientY }
  const touch = 'touches' in event && event instanceof TouchEvent ? event.touches[0] : undefined
  return touch && { x: touch.clientX, y: touch.clientY }
}

const nearest = <T extends Element>(elements: Iterable<T>, far: (box: DOMRect) => number): T | undefined => {
  let best: { element: T; far: number } | undefined
  for (const element of elements) {
    const found = far(element.getBoundingClientRect())
    if (!best || found < best.far) best = { element, far: found }
  }
  return best?.element
}

/** Where a card that is let go at a point lands, by what the page shows there. */
export function landingAt({ x, y }: Point, moving: string): Landing | undefined {
  const column = nearest(document.querySelectorAll<HTMLElement>('[data-column]'), (box) => Math.abs(middle(box).x - x))
  const status = COLUMNS.find((each) => each.status === column?.dataset.column)?.status
  if (!column || !status) return undefined
  const others = [...column.querySelectorAll<HTMLElement>('[data-card]')].filter((each) => each.dataset.card !== moving)
  const card = nearest(others, (box) => Math.abs(middle(box).y - y))
  if (!card?.dataset.card) return { status }
  return { status, card: { id: card.dataset.card, side: y > middle(card.getBoundingClientRect()).y ? 'below' : 'above' } }
}

/** The nearest card of the column under the point; the column itself when it is empty. */
export const nearestCard: CollisionDetection = ({ droppableContainers, droppableRects, collisionRect, pointerCoordinates, active }) => {
  const point = pointerCoordinates ?? middle(collisionRect)
  let column: { id: UniqueIdentifier; rect: Box; far: number } | undefined
  for (const { id } of droppableContainers) {
    const rect = droppableRects.get(id)
    if (!rect || !isColumn(id)) continue
    const far = Math.abs(middle(rect).x - point.x)
    if (!column || far < column.far) column = { id, rect, far }
  }
  if (!column) return []
  let card: { id: UniqueIdentifier; far: number } | undefined
  for (const { id } of droppableContainers) {
    const rect = droppableRects.get(id)
    if (!rect || isColumn(id) || id === active.id) continue
    const at = middle(rect)
    if (at.x < column.rect.left || at.x > column.rect.left + column.rect.width) continue
    const far = Math.abs(at.y - point.y)
    if (!card || far < card.far) card = { id, far }
  }
  return [{ id: card?.id ?? column.id }]
}

/** Arrow keys step from card to card, and from column to column. */
export const stepByKey: KeyboardCoordinateGetter = (event, { context: { collisionRect, droppableRects, active } }) => {
  if (!collisionRect) return undefined
  const here = middle(collisionRect)
  const place = (x: number, y: number) => ({ x: x - collisionRect.width / 2, y: y - collisionRect.height / 2 })
  const columns = COLUMNS.map(({ status }) => droppableRects.get(columnId(status))).filter((rect) => rect !== undefined)
  const at = columns.findIndex((rect) => here.x >= rect.left && here.x <= rect.left + rect.width)
  if (event.code === KeyboardCode.Left || event.code === KeyboardCode.Right) {
    event.preventDefault()
    const next = columns[at + (event.code === KeyboardCode.Right ? 1 : -1)]
    return next ? place(next.left + next.width / 2, Math.max(here.y, next.top + 40)) : undefined
  }
  if (event.code !== KeyboardCode.Up && event.code !== KeyboardCode.Down) return undefined
  event.preventDefault()
  const down = event.code === KeyboardCode.Down
  const column = columns[at]
  let best: number | undefined
  for (const [id, rect] of droppableRects) {
    const { x, y } = middle(rect)
    if (isColumn(id) || id === active?.id || !column || x < column.left || x > column.left + column.width) continue
    if (down ? y <= here.y + 2 : y >= here.y - 2) continue
    if (best === undefined || Math.abs(y - here.y) < Math.abs(best - here.y)) best = y
  }
  return best === undefined ? undefined : place(here.x, best + (down ? 3 : -3))
}
