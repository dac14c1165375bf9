// Times and spans in the reader's own language.
import { keep, locale } from './locale'

const relative = keep((at: string) => new Intl.RelativeTimeFormat(at, { numeric: 'auto', style: 'long' }))
const moment = keep((at: string) => new Intl.DateTimeFormat(at, { dateStyle: 'medium', timeStyle: 'medium' }))
const date = keep((at: string) => new Intl.DateTimeFormat(at, { month: 'short', day: 'numeric' }))

const STEPS: [limit: number, unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  [60, 'second', 1], [3600, 'minute', 60], [86_400, 'hour', 3600], [7 * 86_400, 'day', 86_400],
  [30 * 86_400, 'week', 7 * 86_400], [365 * 86_400, 'month', 30 * 86_400], [Infinity, 'year', 365 * 86_400],
]

/** "3 minutes ago", "in 2 hours". */
export function ago(at: string | undefined, now = Date.now()): string {
  if (!at) return ''
  const seconds = (Date.parse(at) - now) / 1000
  const size = Math.abs(seconds)
  // Clocks differ, and ours is read every few seconds: a near future is now.
  if (size < 10 || (seconds > 0 && seconds < 60)) return relative(locale()).format(0, 'second')
  const [, unit, per] = STEPS.find(([limit]) => size < limit) ?? ['', 'year' as const, 365 * 86_400]
  return relative(locale()).format(Math.round(seconds / per), unit)
}

/** "4m", "2h", "3d": for places without room. */
export function age(at: string | undefined, now = Date.now()): string {
  if (!at) return ''
  return span(Math.max(0, now - Date.parse(at)), 1)
}

/** A length of time: 850 ms, 12 s, 4 m 10 s, 2 h 5 m. */
export function span(ms: number, parts = 2): string {
  if (!Number.isFinite(ms) || ms < 0) return ''
  if (ms < 1000) return parts === 1 ? 'now' : `${Math.round(ms)} ms`
  if (ms < 10_000 && parts > 1) return `${(ms / 1000).toFixed(1)} s`
  const gap = parts === 1 ? '' : ' '
  const seconds = Math.floor(ms / 1000)
  const units: [number, string][] = [[86_400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']]
  const out: string[] = []
  let rest = seconds
  for (const [size, name] of units) {
    const n = Math.floor(rest / size)
    rest -= n * size
    if (n > 0) out.push(`${n}${gap}${name}`)
    if (out.length === parts) break
  }
  return out.join(' ')
}

export function full(at: string | undefined): string {
  return at ? moment(locale()).format(new Date(at)) : ''
}

export function day(at: string): string {
  return date(locale()).format(new Date(at))
}
