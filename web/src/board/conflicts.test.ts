import { expect, test } from 'vitest'
import type { Conflict } from '@/api/types'
import { conflictsByTask, rivalOf } from './conflicts'

const overlap = { task_id: 'a', other_task_id: 'b', repository_id: 'r', files: ['x'] } as Conflict
const withBase = { task_id: 'c', repository_id: 'r', files: ['y'] } as Conflict

test('an overlap is shown on both tasks', () => {
  const map = conflictsByTask([overlap, withBase])
  expect(map.get('a')).toBe(overlap)
  expect(map.get('b')).toBe(overlap)
  expect(map.get('c')).toBe(withBase)
})

test('the rival is the other one, and nobody for the base branch', () => {
  expect(rivalOf(overlap, 'a')).toBe('b')
  expect(rivalOf(overlap, 'b')).toBe('a')
  expect(rivalOf(withBase, 'c')).toBe('')
  expect(rivalOf(undefined, 'c')).toBe('')
})
