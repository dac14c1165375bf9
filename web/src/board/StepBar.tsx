import { memo } from 'react'
import type { Execution } from '@/api/types'
import { cx } from '@/ui/cx'
import { STEPS, stepIndex } from './steps'

/** Seven short bars: done, running (with its share where it is known), to come. */
export const StepBar = memo(function StepBar({ execution, named }: { execution: Execution; named?: boolean }) {
  const at = stepIndex(execution.step)
  const name = STEPS[at]?.name ?? 'review'
  const share = execution.percent ?? 0
  const label = `Step ${Math.min(at + 1, STEPS.length)} of ${STEPS.length}: ${name}${share ? `, ${share}%` : ''}`
  return (
    <div role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={STEPS.length} aria-valuenow={at} title={label} className="flex items-center gap-[3px]">
      {STEPS.map(({ step, name: words }, i) => (
        <span key={step} className="min-w-0 flex-1">
          <span className={cx('relative block h-1 overflow-hidden rounded-full', i < at ? 'bg-accent' : 'bg-line')}>
            {i === at && share > 0 && <span className="absolute inset-y-0 left-0 rounded-full bg-accent transition-[width] duration-500" style={{ width: `${share}%` }} />}
            {i === at && share === 0 && execution.status === 'running' && <span className="absolute inset-y-0 w-1/2 animate-slide rounded-full bg-accent" />}
          </span>
          {named && <span aria-hidden className={cx('mt-1 block truncate text-2xs', i === at ? 'font-medium text-ink' : i < at ? 'text-muted' : 'text-faint')}>{words}</span>}
        </span>
      ))}
    </div>
  )
})
