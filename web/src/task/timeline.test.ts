import { expect, test } from 'vitest'
import { eventOf } from '@/test/make'
import { stepsOf } from './timeline'

test('a fetch that tells how far it is stands after the sandbox it is for', () => {
  const lines = stepsOf([
    eventOf(1, 'step', { step: 'clone', status: 'running', percent: 40, detail: 'Receiving objects' }),
    eventOf(2, 'step', { step: 'sandbox', status: 'succeeded', duration_ms: 900 }),
    eventOf(3, 'step', { step: 'clone', status: 'succeeded', duration_ms: 4 }),
  ])
  expect(lines.map((line) => [line.step, line.status])).toEqual([['sandbox', 'succeeded'], ['clone', 'succeeded']])
  expect(lines[1]?.detail).toBeUndefined()
})

test('a second turn has steps of its own, and tries are counted', () => {
  const lines = stepsOf([
    eventOf(1, 'step', { step: 'agent', status: 'succeeded' }),
    eventOf(2, 'step', { step: 'push', status: 'retrying' }),
    eventOf(3, 'step', { step: 'push', status: 'retrying' }),
    eventOf(4, 'step', { step: 'push', status: 'succeeded' }),
    eventOf(5, 'step', { step: 'agent', status: 'running' }),
  ])
  expect(lines.map((line) => [line.step, line.tries])).toEqual([['agent', 1], ['push', 2], ['agent', 1]])
})
