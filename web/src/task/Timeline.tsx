import { useQuery } from '@tanstack/react-query'
import { Check, Circle, LoaderCircle, RotateCcw, X } from 'lucide-react'
import { useMemo } from 'react'
import { eventsQuery } from '@/api/events'
import type { Execution } from '@/api/types'
import { span } from '@/format/time'
import { Rows } from '@/ui/States'
import { stepsOf } from './timeline'

const NAMES: Record<string, string> = { sandbox: 'Sandbox', clone: 'Clone', branch: 'Branch', agent: 'Agent', commit: 'Commit', push: 'Push', pull_request: 'Pull request', review: 'Review', cleanup: 'Clean up' }
const MARKS = {
  running: <LoaderCircle aria-label="running" className="size-4 animate-spin text-warn" />,
  succeeded: <Check aria-label="done" className="size-4 text-ok" />,
  failed: <X aria-label="failed" className="size-4 text-danger" />,
  retrying: <RotateCcw aria-label="tried again" className="size-4 text-warn" />,
}

/** The recipe as it went: each step with what it took. */
export function Timeline({ execution }: { execution: Execution }) {
  const events = useQuery(eventsQuery(execution.id))
  const steps = useMemo(() => stepsOf(events.data ?? []), [events.data])
  return (
    <div>
      <h4 className="mb-2 text-xs font-medium text-muted">Steps</h4>
      {events.isPending && <Rows n={3} what="the steps" />}
      {events.data && steps.length === 0 && <p className="text-sm text-faint">{execution.status === 'queued' ? 'Waits for its turn.' : 'No step was recorded.'}</p>}
      <ol className="space-y-1.5 text-sm">
        {steps.map((line) => (
          <li key={`${line.step}/${line.at}`} className="flex items-center gap-2">
            {MARKS[line.status] ?? <Circle aria-hidden className="size-4" />}
            <span className="font-medium">{NAMES[line.step] ?? line.step}</span>
            <span className="min-w-0 flex-1 truncate text-xs text-muted">{line.detail}{line.tries > 1 && ` (${line.tries} tries)`}</span>
            {line.status === 'running' && line.percent ? <span className="tabular text-xs text-muted">{line.percent}%</span> : null}
            {line.duration_ms !== undefined && <span className="tabular text-xs text-faint">{span(line.duration_ms)}</span>}
          </li>
        ))}
      </ol>
    </div>
  )
}
