import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { allSandboxesQuery } from '@/api/sandboxes'
import type { Execution, Task } from '@/api/types'
import { StepBar } from '@/board/StepBar'
import { livenessWords, SANDBOX_WORDS } from '@/board/steps'
import { compact, usd } from '@/format/number'
import { span } from '@/format/time'
import { EXECUTION_TONES } from '@/task/tones'
import { Badge } from '@/ui/Badge'
import { useNow } from '@/ui/useNow'

/** Where the work stands: what it is, how far, how long, how dear, and where it happens. */
export function NowCard({ execution, task }: { execution: Execution; task: Task | undefined }) {
  const sandboxes = useQuery(allSandboxesQuery)
  const now = useNow()
  const sandbox = sandboxes.data?.find((each) => each.id === execution.sandbox_id)
  const took = execution.started_at && span(Date.parse(execution.finished_at ?? new Date(now).toISOString()) - Date.parse(execution.started_at))
  return (
    <section aria-label="Now" className="space-y-4 p-4">
      <div>
        <p className="mb-1.5 flex items-center gap-2 text-xs text-muted"><Badge tone={EXECUTION_TONES[execution.status]}>{execution.status}</Badge>attempt {execution.attempt}{execution.turn > 1 && `, turn ${execution.turn}`}</p>
        {task && <Link to="/squads/$squadId/tasks/$number" params={{ squadId: task.squad_id, number: String(task.number) }} className="text-sm font-semibold text-pretty hover:underline"><span className="tabular text-faint">#{task.number}</span> {task.title}</Link>}
      </div>
      <div>
        <StepBar execution={execution} />
        <p className="mt-1.5 truncate text-xs text-muted" title={livenessWords(execution)}>{livenessWords(execution)}</p>
      </div>
      <dl className="grid grid-cols-2 gap-x-4 gap-y-2.5 text-xs">
        {took && <Fact name="Took">{took}</Fact>}
        <Fact name="Cost">{usd(execution.model_cost_usd + execution.sandbox_cost_usd)}</Fact>
        <Fact name="Tokens">{compact(execution.tokens_in + execution.tokens_out)}</Fact>
        <Fact name="Commits">{String(execution.commit_history?.length ?? 0)}</Fact>
        {sandbox && <Fact name="Sandbox">{SANDBOX_WORDS[sandbox.status]}</Fact>}
        {execution.git_branch && <Fact name="Branch"><span className="font-mono break-all">{execution.git_branch}</span></Fact>}
      </dl>
    </section>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div className="min-w-0"><dt className="text-faint">{name}</dt><dd className="tabular truncate font-medium">{children}</dd></div>
}
