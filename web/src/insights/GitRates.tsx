import type { GitOperation } from '@/api/types'
import { percent } from '@/format/number'
import { span } from '@/format/time'

/** How often each git operation succeeds and what it takes. */
export function GitRates({ operations }: { operations: GitOperation[] }) {
  const kinds = [...new Set(operations.map((each) => each.kind))].toSorted()
  if (kinds.length === 0) return <p className="py-6 text-center text-sm text-faint">No git operation has run yet.</p>
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-left text-sm">
        <thead className="text-xs text-faint"><tr><th className="py-1 font-medium">Operation</th><th className="py-1 text-right font-medium">Runs</th><th className="py-1 text-right font-medium">Succeeded</th><th className="py-1 text-right font-medium">Tried again</th><th className="py-1 text-right font-medium">Half under</th></tr></thead>
        <tbody>
          {kinds.map((kind) => {
            const rows = operations.filter((each) => each.kind === kind && each.status !== 'running')
            const good = rows.filter((each) => each.status === 'succeeded').length
            const times = rows.map((each) => each.duration_ms).toSorted((a, b) => a - b)
            return (
              <tr key={kind} className="tabular border-t">
                <td className="py-1.5">{kind}</td>
                <td className="py-1.5 text-right">{rows.length}</td>
                <td className={`py-1.5 text-right ${good < rows.length ? 'text-warn' : ''}`}>{percent(good, rows.length)}</td>
                <td className="py-1.5 text-right">{rows.filter((each) => each.attempts > 1).length}</td>
                <td className="py-1.5 text-right">{span(times[Math.floor(times.length / 2)] ?? 0)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
