import { CheckCircle2, Circle, CircleDot } from 'lucide-react'
import type { Plan } from '@/api/types'
import { cx } from '@/ui/cx'

const MARKS = { completed: CheckCircle2, in_progress: CircleDot, pending: Circle }
const INKS = { completed: 'text-ok', in_progress: 'text-warn', pending: 'text-faint' }

export function PlanCard({ plan }: { plan: Plan }) {
  const done = plan.entries.filter((entry) => entry.status === 'completed').length
  return (
    <section aria-label="Plan" className="p-4">
      <h2 className="mb-3 flex items-baseline justify-between text-sm font-semibold">Plan<span className="tabular text-xs font-normal text-faint">{done} of {plan.entries.length}</span></h2>
      <ol className="space-y-2 text-sm">
        {plan.entries.map((entry) => {
          const Mark = MARKS[entry.status] ?? Circle
          return (
            <li key={entry.text} className="flex gap-2">
              <Mark aria-label={entry.status.replace('_', ' ')} className={cx('mt-0.5 size-4 shrink-0', INKS[entry.status])} />
              <span className={entry.status === 'completed' ? 'text-muted' : ''}>{entry.text}</span>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
