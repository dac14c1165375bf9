import type { UsageRow } from '@/api/types'

/** One row for each day of the period, also for those on which nothing was spent. */
export function everyDay(rows: UsageRow[], days: number, now = Date.now()): UsageRow[] {
  const byKey = new Map(rows.map((row) => [row.key, row]))
  return Array.from({ length: days }, (_, i) => {
    const key = new Date(now - (days - 1 - i) * 86_400_000).toISOString().slice(0, 10)
    return byKey.get(key) ?? { key, tokens_in: 0, tokens_out: 0, tokens_cached: 0, cost_usd: 0, calls: 0 }
  })
}

/** A round number at or above the largest value, for the top of an axis. */
export function roundTop(value: number): number {
  if (value <= 0) return 1
  const size = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 2.5, 5, 10].find((step) => step * size >= value) ?? 10) * size
}
