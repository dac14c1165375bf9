import { QueryClient } from '@tanstack/react-query'
import { beforeEach, describe, expect, test } from 'vitest'
import { keys } from '@/api/keys'
import type { Execution, SquadEvent, Task } from '@/api/types'
import { aMember, anExecution, aTask, eventOf } from '@/test/make'
import { applyEvents, mergeEvents, upsert, withConflict } from './reduce'

const SQUAD = 'squad'
let cache: QueryClient
beforeEach(() => { cache = new QueryClient() })

const tasks = () => cache.getQueryData<Task[]>(keys.tasks(SQUAD))

describe('rows', () => {
  test('a created task appears, a changed one is replaced, a deleted one goes', () => {
    cache.setQueryData(keys.tasks(SQUAD), [])
    applyEvents(cache, [eventOf(1, 'task_created', aTask({ id: 'a' }))])
    applyEvents(cache, [eventOf(2, 'task_updated', aTask({ id: 'a', title: 'new', version: 2 }))])
    expect(tasks()?.map((task) => task.title)).toEqual(['new'])
    applyEvents(cache, [eventOf(3, 'task_deleted', { id: 'a' })])
    expect(tasks()).toEqual([])
  })

  test('an older version never overwrites a newer one', () => {
    cache.setQueryData(keys.tasks(SQUAD), [aTask({ id: 'a', version: 5, title: 'five' })])
    applyEvents(cache, [eventOf(1, 'task_updated', aTask({ id: 'a', version: 4, title: 'four' }))])
    expect(tasks()?.[0]?.title).toBe('five')
  })

  test('other rows keep their identity, so that only one card renders', () => {
    const other = aTask({ id: 'b' })
    cache.setQueryData(keys.tasks(SQUAD), [aTask({ id: 'a' }), other])
    applyEvents(cache, [eventOf(1, 'task_updated', aTask({ id: 'a', version: 2 }))])
    expect(tasks()?.[1]).toBe(other)
  })

  test('what nobody has loaded is not made up', () => {
    applyEvents(cache, [eventOf(1, 'task_created', aTask({ id: 'a' })), eventOf(2, 'log', { stream: 'stdout', text: 'x' }, { execution_id: 'e' })])
    expect(tasks()).toBeUndefined()
    expect(cache.getQueryData(keys.events('e'))).toBeUndefined()
  })
})

describe('executions', () => {
  const active = () => cache.getQueryData<Execution[]>(keys.active(SQUAD))

  test('an ended one leaves the board and stays on its task', () => {
    const row = anExecution({ id: 'e', task_id: 't' })
    cache.setQueryData(keys.active(SQUAD), [row])
    cache.setQueryData(keys.executionsOf('t'), [row])
    applyEvents(cache, [eventOf(1, 'execution_updated', { ...row, status: 'succeeded' })])
    expect(active()).toEqual([])
    expect(cache.getQueryData<Execution[]>(keys.executionsOf('t'))?.[0]?.status).toBe('succeeded')
  })

  test('a step moves the bar before the row follows', () => {
    cache.setQueryData(keys.active(SQUAD), [anExecution({ id: 'e', step: 'sandbox' })])
    applyEvents(cache, [eventOf(1, 'step', { step: 'clone', status: 'running', percent: 40 }, { execution_id: 'e', task_id: 't' })])
    expect(active()?.[0]).toMatchObject({ step: 'clone', percent: 40 })
  })

  test('git tells how far a clone is; an ended step does not turn the bar back', () => {
    cache.setQueryData(keys.active(SQUAD), [anExecution({ id: 'e', step: 'clone' })])
    const git = { id: 'g', kind: 'clone' as const, attempts: 1, duration_ms: 0, exit_code: 0, created_at: '' }
    applyEvents(cache, [eventOf(1, 'git_operation', { ...git, status: 'running', percent: 60 }, { execution_id: 'e' }), eventOf(2, 'step', { step: 'sandbox', status: 'succeeded' }, { execution_id: 'e' })])
    expect(active()?.[0]).toMatchObject({ step: 'clone', percent: 60 })
  })

  test('their events are appended where someone watches', () => {
    cache.setQueryData<SquadEvent[]>(keys.events('e'), [])
    applyEvents(cache, [eventOf(1, 'log', { stream: 'stdout', text: 'a' }, { execution_id: 'e' }), eventOf(2, 'log', { stream: 'stdout', text: 'b' }, { execution_id: 'e' })])
    expect(cache.getQueryData<SquadEvent[]>(keys.events('e'))?.map((event) => event.seq)).toEqual([1, 2])
  })
})

describe('mergeEvents', () => {
  const log = (seq: number) => eventOf(seq, 'log', { stream: 'stdout', text: String(seq) })
  const numbers = (events: SquadEvent[]) => events.map((event) => event.seq)

  test('has no gap and no repeat, whatever overlaps', () => {
    expect(numbers(mergeEvents([log(1), log(2), log(4)], [log(2), log(3), log(4), log(5)]))).toEqual([1, 2, 3, 4, 5])
  })
  test('appends in order without sorting', () => {
    expect(numbers(mergeEvents([log(1)], [log(2), log(9)]))).toEqual([1, 2, 9])
  })
  test('returns the same list when there is nothing new', () => {
    const have = [log(1)]
    expect(mergeEvents(have, [])).toBe(have)
  })
})

test('a conflict is shown once and cleared by its pair', () => {
  const conflict = { repository_id: 'r', task_id: 'a', other_task_id: 'b', files: ['x'] }
  const once = withConflict([], conflict, true)
  expect(withConflict(once, { ...conflict, files: ['x', 'y'] }, true)).toHaveLength(1)
  expect(withConflict(once, conflict, false)).toEqual([])
})

test('upsert keeps a list that was never loaded as it is', () => {
  expect(upsert(undefined, { id: 'a' })).toBeUndefined()
})

test('a change of a member that was removed does not bring it back', () => {
  cache.setQueryData(keys.members('squad'), [aMember({ id: 'stays' })])
  applyEvents(cache, [eventOf(1, 'member_changed', aMember({ id: 'gone', is_active: false }))])
  expect(cache.getQueryData<{ id: string }[]>(keys.members('squad'))?.map(({ id }) => id)).toEqual(['stays'])
  expect(cache.getQueryState(keys.members('squad'))?.isInvalidated).toBe(true)
})

test('a change of a known member is shown at once', () => {
  cache.setQueryData(keys.members('squad'), [aMember({ id: 'm' })])
  applyEvents(cache, [eventOf(1, 'member_changed', aMember({ id: 'm', name: 'Ada Lovelace' }))])
  expect(cache.getQueryData<{ name: string }[]>(keys.members('squad'))?.[0]?.name).toBe('Ada Lovelace')
  expect(cache.getQueryState(keys.members('squad'))?.isInvalidated).toBe(false)
})
