import { CircleCheck, CircleMinus, CircleX, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Check } from '@/api/types'
import { cx } from './cx'

const MARKS: Record<Check['status'], ReactNode> = {
  ok: <CircleCheck aria-label="ok" className="size-4 text-ok" />,
  warning: <TriangleAlert aria-label="warning" className="size-4 text-warn" />,
  failed: <CircleX aria-label="failed" className="size-4 text-danger" />,
  skipped: <CircleMinus aria-label="skipped" className="size-4 text-faint" />,
}

/** What was examined, what was found, and what to do about it. */
export function Checks({ checks }: { checks: Check[] }) {
  return (
    <ul className="divide-y">
      {checks.map((check) => (
        <li key={check.name} className="flex gap-3 py-2.5 text-sm first:pt-0 last:pb-0">
          <span className="mt-0.5">{MARKS[check.status]}</span>
          <div className="min-w-0 flex-1">
            <p><b className="font-medium">{check.name}</b> <span className="break-words text-muted">{check.detail}</span></p>
            {check.remedy && <p className={cx('mt-0.5 text-xs break-words', check.status === 'ok' ? 'text-muted' : 'text-warn')}>{check.remedy}</p>}
          </div>
        </li>
      ))}
    </ul>
  )
}
