import { expect, test } from 'vitest'
import type { Execution, Message } from '@/api/types'
import { openQuestion } from './question'

const run = { id: 'e', task_id: 't', status: 'waiting', liveness: { state: 'person' } } as Execution
const message = (change: Partial<Message>) => ({ id: 'm', from: 'member:a', to: 'squad', kind: 'question', body: 'Which colour?', execution_id: 'e', created_at: '2026-01-01T00:00:01Z', ...change }) as Message

test('the newest question of a run that waits is open', () => {
  const later = message({ id: 'n', created_at: '2026-01-01T00:00:05Z' })
  expect(openQuestion([message({}), later], run)).toBe(later)
})

test('an answer closes it, and only of this run', () => {
  const answer = message({ id: 'x', from: 'user:u', kind: 'nudge', created_at: '2026-01-01T00:00:09Z' })
  expect(openQuestion([message({}), answer], run)).toBeUndefined()
  expect(openQuestion([message({}), { ...answer, execution_id: 'other', task_id: 'other' }], run)).toBeDefined()
})

test('a run that goes on has no open question', () => {
  expect(openQuestion([message({})], { ...run, liveness: { state: 'working' } })).toBeUndefined()
  expect(openQuestion([message({})], undefined)).toBeUndefined()
})
