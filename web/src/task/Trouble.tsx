import { Link } from '@tanstack/react-router'
import { CircleAlert, Hourglass, OctagonX } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Execution, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { Button } from '@/ui/Button'
import { cx } from '@/ui/cx'
import { type Cause, causeOf, type Remedy } from './causes'
import { useTaskVerbs } from './useTaskVerbs'

const LOOKS: Record<Cause['tone'], { icon: typeof OctagonX; frame: string; ink: string }> = {
  danger: { icon: OctagonX, frame: 'border-danger/25 bg-danger-soft', ink: 'text-danger' },
  warn: { icon: Hourglass, frame: 'border-warn/25 bg-warn-soft', ink: 'text-warn' },
  info: { icon: CircleAlert, frame: 'border-line bg-sunken', ink: 'text-muted' },
}

export const BUDGET_FIELD = 'task-budget'

/** Why a task does not move, and what can be done about it. */
export function Trouble({ task, execution }: { task: Task; execution: Execution | undefined }) {
  const cause = causeOf(task, execution)
  const may = useMay(task.squad_id, 'member')
  if (!cause) return null
  const { icon: Icon, frame, ink } = LOOKS[cause.tone]
  return (
    <section aria-label="Why it does not move" className={cx('flex gap-3 rounded-lg border p-4 text-sm', frame)}>
      <Icon aria-hidden className={cx('mt-0.5 size-4 shrink-0', ink)} />
      <div className="min-w-0 flex-1">
        <p role="status" className={cx('font-semibold', ink)}>{cause.title}</p>
        {cause.detail && <p className="mt-0.5 break-words">{cause.detail}</p>}
        <p className="mt-0.5 text-muted">{cause.advice}</p>
        {may && <div className="mt-3 flex flex-wrap gap-2 empty:hidden">{cause.remedies.map((remedy) => <RemedyButton key={remedy} remedy={remedy} task={task} />)}</div>}
      </div>
    </section>
  )
}

function RemedyButton({ remedy, task }: { remedy: Remedy; task: Task }) {
  const { retry } = useTaskVerbs(task)
  const params = { squadId: task.squad_id }
  const settings = (tab: string, words: string) => <Way><Link to="/squads/$squadId/settings" params={params} search={{ tab }}>{words}</Link></Way>
  switch (remedy) {
    case 'retry': return <Button size="sm" look="primary" busy={retry.isPending} onClick={() => retry.mutate('')}>Try again</Button>
    case 'budget': return <Button size="sm" onClick={() => document.getElementById(BUDGET_FIELD)?.querySelector('input')?.focus()}>Raise the budget</Button>
    case 'member-budget': return settings('members', 'Raise the member’s budget')
    case 'squad-budget': return settings('policy', 'Raise the squad’s budget')
    case 'repository': return settings('repositories', 'Check the repository')
    case 'credentials': return settings('credentials', 'Credentials')
    case 'system': return <Way><Link to="/system">Ask the doctor</Link></Way>
    case 'sandboxes': return <Way><Link to="/squads/$squadId/sandboxes" params={params}>See the sandboxes</Link></Way>
    case 'answer': return task.assignee_id ? <Way><Link to="/squads/$squadId/agents/$memberId" params={{ ...params, memberId: task.assignee_id }} search={{ tab: 'conversations' }}>Write to the agent</Link></Way> : null
    case 'review':
    case 'wait': return null
  }
}

function Way({ children }: { children: ReactNode }) {
  return <span className="inline-flex h-7 items-center rounded-md border border-line bg-surface px-2.5 text-sm font-medium shadow-card hover:border-line-strong [&_a]:outline-offset-4">{children}</span>
}
