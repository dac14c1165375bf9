import { Link } from '@tanstack/react-router'
import { Ban, CircleAlert, CircleCheck, CircleDashed, CircleX, GitBranch, GitMerge, GitPullRequest, Link2, OctagonX, TriangleAlert } from 'lucide-react'
import { memo, type ReactNode } from 'react'
import type { Conflict, Execution, Member, PullRequest, Repository, Sandbox, Task } from '@/api/types'
import { usd } from '@/format/number'
import { Avatar } from '@/ui/Avatar'
import { Badge, type Tone } from '@/ui/Badge'
import { cx } from '@/ui/cx'
import { Time } from '@/ui/Time'
import { StepBar } from './StepBar'
import { livenessWords, pulseOf, SANDBOX_WORDS } from './steps'

export interface CardProps {
  task: Task
  execution?: Execution | undefined
  sandbox?: Sandbox | undefined
  pull?: PullRequest | undefined
  member?: Member | undefined
  repository?: Repository | undefined
  conflict?: Conflict | undefined
  waitsFor?: number
  lifted?: boolean
  /** The grip and the check mark of the board, in the corner. */
  corner?: ReactNode
}

const PRIORITY: Record<number, { tone: Tone; name: string }> = { 2: { tone: 'warn', name: 'High' }, 3: { tone: 'danger', name: 'Urgent' } }

export const Card = memo(function Card(props: CardProps) {
  const { task, execution, repository, corner, lifted } = props
  const priority = PRIORITY[task.priority]
  return (
    <article className={cx('group/card relative rounded-lg border bg-surface p-3 text-sm shadow-card transition-[border-color,box-shadow] hover:border-line-strong', lifted && 'rotate-[1.2deg] border-line-strong shadow-lift')}>
      <div className="flex items-center gap-1.5 text-xs text-faint">
        <span className="tabular">#{task.number}</span>
        {repository && <span className="min-w-0 truncate">{repository.name}</span>}
        <span className="ml-auto flex items-center gap-1.5">{corner}<Time at={task.created_at} short /></span>
      </div>
      <h3 className="mt-1 leading-snug font-medium text-pretty">
        <Link
          to="/squads/$squadId/tasks/$number" params={{ squadId: task.squad_id, number: String(task.number) }} draggable={false}
          className="line-clamp-3 break-words after:absolute after:inset-0 after:rounded-lg focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:outline-accent"
        >
          {task.title}
        </Link>
      </h3>
      {(priority || (task.labels?.length ?? 0) > 0) && (
        <div className="mt-1.5 flex flex-wrap gap-1">
          {priority && <Badge tone={priority.tone}>{priority.name}</Badge>}
          {task.labels?.map((label) => <Badge key={label}>{label}</Badge>)}
        </div>
      )}
      <Trouble {...props} />
      {execution && task.status === 'in_progress' && <div className="mt-2.5"><StepBar execution={execution} /></div>}
      <Foot {...props} />
    </article>
  )
})

const FLAGS = {
  blocked: { icon: Ban, tone: 'text-warn', name: 'Blocked' },
  failed: { icon: OctagonX, tone: 'text-danger', name: 'Failed' },
  cancelled: { icon: CircleX, tone: 'text-faint', name: 'Cancelled' },
} as const

function Trouble({ task, conflict, waitsFor }: CardProps) {
  const files = conflict?.files ?? []
  const flag = task.flag ? FLAGS[task.flag] : undefined
  if (!flag && !conflict && !waitsFor) return null
  return (
    <ul className="mt-2 space-y-1 text-xs">
      {flag && <li className={cx('flex gap-1.5', flag.tone)}><flag.icon aria-hidden className="mt-0.5 size-3.5 shrink-0" /><span className="line-clamp-2"><b className="font-medium">{flag.name}</b>{task.cause && `: ${task.cause}`}</span></li>}
      {conflict && <li className="flex gap-1.5 text-warn"><TriangleAlert aria-hidden className="mt-0.5 size-3.5 shrink-0" /><span className="truncate" title={files.join('\n')}>Overlaps in {files[0]}{files.length > 1 && ` +${files.length - 1}`}</span></li>}
      {waitsFor ? <li className="flex gap-1.5 text-muted"><Link2 aria-hidden className="mt-0.5 size-3.5 shrink-0" />Waits for {waitsFor} {waitsFor === 1 ? 'task' : 'tasks'}</li> : null}
    </ul>
  )
}

const DOTS: Record<Sandbox['status'], string> = { created: 'bg-info animate-breathe', running: 'bg-ok', paused: 'bg-warn', terminated: 'bg-line-strong', error: 'bg-danger' }

function Foot({ task, execution, member, sandbox, pull }: CardProps) {
  const branch = task.git_branch && task.execution_id && !pull
  if (!member && !pull && !branch && !task.cost_usd && !execution) return null
  return (
    <div className="mt-2.5 flex items-center gap-2 text-xs text-muted">
      {member && <Avatar id={member.id} name={member.name} pulse={pulseOf(execution)} />}
      {execution && task.status === 'in_progress'
        ? <span className="min-w-0 flex-1 truncate" title={livenessWords(execution)}>{livenessWords(execution)}</span>
        : <span className="min-w-0 flex-1 truncate">{member?.name}</span>}
      {sandbox && sandbox.status !== 'terminated' && (
        <span role="img" title={`Sandbox ${SANDBOX_WORDS[sandbox.status]}`} aria-label={`Sandbox ${SANDBOX_WORDS[sandbox.status]}`} className={cx('size-2 shrink-0 rounded-full', DOTS[sandbox.status])} />
      )}
      {branch && !execution && <span className="flex min-w-0 items-center gap-1 truncate" title={task.git_branch}><GitBranch aria-hidden className="size-3.5 shrink-0" /><span className="truncate">{task.git_branch}</span></span>}
      {pull && <PullMark pull={pull} />}
      {task.cost_usd > 0 && <span className="tabular shrink-0" title="Spent so far">{usd(task.cost_usd)}</span>}
    </div>
  )
}

function PullMark({ pull }: { pull: PullRequest }) {
  const merged = pull.state === 'merged'
  const Icon = merged ? GitMerge : GitPullRequest
  return (
    <span className={cx('flex shrink-0 items-center gap-1', merged ? 'text-review' : pull.state === 'closed' ? 'text-faint' : 'text-ok')} title={`Pull request ${pull.number} is ${pull.state}; checks: ${pull.checks}; merge: ${pull.mergeable}`}>
      <Icon aria-hidden className="size-3.5" />
      <span className="tabular">{pull.number}</span>
      {pull.checks === 'success' && <CircleCheck aria-label="checks passed" className="size-3.5 text-ok" />}
      {pull.checks === 'pending' && <CircleDashed aria-label="checks run" className="size-3.5 animate-breathe text-warn" />}
      {pull.checks === 'failure' && <CircleX aria-label="checks failed" className="size-3.5 text-danger" />}
      {pull.mergeable === 'conflict' && !merged && <CircleAlert aria-label="conflicts with its base" className="size-3.5 text-warn" />}
    </span>
  )
}
