// @vitest-environment happy-dom
import type { DragMoveEvent } from '@dnd-kit/core'
import { act, cleanup, renderHook } from '@testing-library/react'
import { afterEach, expect, test } from 'vitest'
import { aTask } from '@/test/make'
import { columnsOf } from './order'
import { useDragBoard } from './useDragBoard'

afterEach(cleanup)

const task = aTask({ number: 3, status: 'todo' })
const moved = { activatorEvent: new KeyboardEvent('keydown'), active: { id: task.id, rect: { current: { translated: null } } }, over: { id: 'column:done' } } as unknown as DragMoveEvent

test('a move that is told after the drag was given up marks no place', () => {
  const { result } = renderHook(() => useDragBoard(columnsOf([task]), new Map([[task.id, task]]), () => undefined))
  const { handlers } = result.current
  act(() => handlers.onDragStart({ active: { id: task.id } }))
  act(() => handlers.onDragMove(moved))
  expect(result.current.landing).toEqual({ status: 'done' })
  act(() => {
    handlers.onDragCancel()
    handlers.onDragMove(moved)
  })
  expect(result.current.landing).toBeUndefined()
  act(() => handlers.onDragStart({ active: { id: task.id } }))
  expect(result.current.landing).toBeUndefined()
})
