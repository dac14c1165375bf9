import { describe, expect, test } from 'vitest'
import { bytes, count, percent, usd } from './number'
import { age, ago, span } from './time'

const NOW = Date.parse('2026-11-15T12:00:00Z')
const before = (seconds: number) => new Date(NOW - seconds * 1000).toISOString()

describe('times', () => {
  test.each([[2, 'now'], [50, '50 seconds ago'], [200, '3 minutes ago'], [7200, '2 hours ago'], [86_400, 'yesterday'], [20 * 86_400, '3 weeks ago'], [-3600, 'in 1 hour']])('%s seconds before now: %s', (seconds, words) => {
    expect(ago(before(seconds), NOW)).toBe(words)
  })
  test.each([[0, 'now'], [59, '59s'], [61, '1m'], [7300, '2h'], [3 * 86_400, '3d']])('short age of %s seconds: %s', (seconds, words) => {
    expect(age(before(seconds), NOW)).toBe(words)
  })
  test.each([[12, '12 ms'], [1234, '1.2 s'], [65_000, '1 m 5 s'], [3_600_000, '1 h'], [-1, '']])('%s ms: %s', (ms, words) => {
    expect(span(ms)).toBe(words)
  })
  test('nothing is said about a time that is not there', () => expect(ago(undefined)).toBe(''))
})

describe('amounts', () => {
  test.each([[0, '$0.00'], [0.0012, '$0.0012'], [1.5, '$1.50'], [12_345, '$12,345']])('%s dollars: %s', (amount, words) => expect(usd(amount)).toBe(words))
  test.each([[12, '12 B'], [1536, '1.5 KB'], [200 * 1024 * 1024, '200 MB']])('%s bytes: %s', (n, words) => expect(bytes(n)).toBe(words))
  test('counts have a plural', () => {
    expect(count(1, 'task')).toBe('1 task')
    expect(count(2, 'entry', 'entries')).toBe('2 entries')
  })
  test('a share of nothing is a dash', () => {
    expect(percent(0, 0)).toBe('–')
    expect(percent(7, 8)).toBe('87.5%')
  })
})
