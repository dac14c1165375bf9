import type { UsageRow } from '@/api/types'
import { compact, usd } from '@/format/number'

/** The dearest first, each with its share of the dearest. */
export function Ranking({ rows, nameOf }: { rows: UsageRow[]; nameOf: (key: string) => string }) {
  const sorted = rows.toSorted((a, b) => b.cost_usd - a.cost_usd).slice(0, 8)
  const most = sorted[0]?.cost_usd ?? 0
  if (sorted.length === 0) return <p className="py-6 text-center text-sm text-faint">Nothing was spent in this time.</p>
  return (
    <ol className="space-y-2.5 text-sm">
      {sorted.map((row) => (
        <li key={row.key}>
          <div className="flex items-baseline gap-3">
            <span className="min-w-0 flex-1 truncate">{nameOf(row.key)}</span>
            <span className="tabular text-xs text-faint">{compact(row.tokens_in + row.tokens_out)} tokens</span>
            <span className="tabular w-16 text-right font-medium">{usd(row.cost_usd)}</span>
          </div>
          <div aria-hidden className="mt-1 h-1.5 overflow-hidden rounded-full bg-sunken"><div className="h-full rounded-full bg-accent/75" style={{ width: `${most ? (row.cost_usd / most) * 100 : 0}%` }} /></div>
        </li>
      ))}
    </ol>
  )
}
