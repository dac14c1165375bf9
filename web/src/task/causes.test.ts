import { expect, test } from 'vitest'
import type { Execution, Task } from '@/api/types'
import { usd } from '@/format/number'
import { budgetWords, causeOf } from './causes'

const task = (change: Partial<Task>) => ({ id: 't', status: 'in_progress', ...change }) as Task
const run = (change: Partial<Execution>) => ({ id: 'e', status: 'running', ...change }) as Execution

test('a task that goes well has no cause', () => {
  expect(causeOf(task({}), run({ liveness: { state: 'working' } }))).toBeUndefined()
  expect(causeOf(task({}), undefined)).toBeUndefined()
})

test('a spent budget says whose, and how to raise it', () => {
  const own = causeOf(task({ flag: 'failed', cause: 'the budget of the task does not allow this call: $0.0100 of $0.0100 are spent' }), run({ error_code: 'quota_exceeded' }))
  expect(own?.title).toBe('The budget of this task is spent')
  expect(own?.remedies).toEqual(['budget', 'retry'])
  const squad = causeOf(task({ flag: 'failed', cause: 'the budget of the squad does not allow this call' }), undefined)
  expect(squad?.remedies).toEqual(['squad-budget', 'retry'])
})

test('a spent budget that an agent tells in its own words is one all the same', () => {
  const cause = causeOf(task({ flag: 'failed', cause: 'budget_reached: API Error: 403' }), run({ error_code: 'quota_exceeded' }))
  expect(cause).toMatchObject({ title: 'A budget is spent', detail: 'API Error: 403', remedies: ['budget', 'squad-budget', 'retry'] })
})

test('every failure offers a way on', () => {
  for (const error_code of ['quota_exceeded', 'provider', 'unavailable', 'timeout', 'forbidden', 'unauthorized', 'not_found', 'invalid', 'rule_broken', 'internal', undefined]) {
    const cause = causeOf(task({ flag: 'failed', cause: 'because' }), run(error_code ? { error_code } : {}))
    expect(cause?.remedies.length, error_code).toBeGreaterThan(0)
    expect(cause?.advice, error_code).not.toBe('')
    expect(cause?.detail).toBe('because')
  }
})

test('waiting for a sandbox and going in circles are told while it runs', () => {
  expect(causeOf(task({}), run({ liveness: { state: 'quota' } }))?.title).toMatch(/free sandbox/)
  expect(causeOf(task({}), run({ liveness: { state: 'looping' } }))?.remedies).toEqual(['answer'])
  expect(causeOf(task({ status: 'in_review' }), run({ liveness: { state: 'looping' } }))).toBeUndefined()
})

test('a reached budget names its amount and where to raise it', () => {
  expect(budgetWords({ scope: 'task', limit_usd: 0.5, spent_usd: 0.51 }, usd)).toMatch(/0\.51 of .*0\.50.*on the task’s page/)
  expect(budgetWords({ scope: 'squad', limit_usd: 0, spent_usd: 10 }, usd)).toMatch(/squad’s budget/)
})
