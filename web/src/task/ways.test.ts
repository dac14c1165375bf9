import { expect, test } from 'vitest'
import { anExecution } from '@/test/make'
import { isDecided, waysOf } from './ways'

const way = (lane: number, status: 'running' | 'waiting' | 'failed' | 'cancelled' = 'running', attempt = 2) => anExecution({ id: `${attempt}.${lane}`, attempt, status, ...(lane > 0 && { lane }) })

test('the tries of the newest fork stand side by side, in order', () => {
  const old = anExecution({ id: 'old', attempt: 1, status: 'failed' })
  expect(waysOf([way(2), old, way(0), way(1)]).map((each) => each.id)).toEqual(['2.0', '2.1', '2.2'])
})

test('one try alone is no fork, nor are tries that all ended', () => {
  expect(waysOf([way(0)])).toEqual([])
  expect(waysOf([way(0, 'failed'), way(1, 'failed')])).toEqual([])
})

test('a fork is decided when one was kept', () => {
  expect(isDecided([way(0), way(1, 'cancelled'), way(2, 'cancelled')])).toBe(true)
  expect(isDecided([way(0, 'waiting'), way(1, 'failed')])).toBe(false)
})
