import { Link } from '@tanstack/react-router'
import { Ban, Box, CircleAlert, CircleCheck, CircleDashed, CircleX, GitBranch, GitMerge, GitPullRequest, Link2, MessageCircleQuestion, OctagonX, TriangleAlert } from 'lucide-react'
import { memo, type ReactNode } from 'react'
import type { Conflict, Execution, Member, PullRequest, Repository, Sandbox, Task } from '@/api/types'
import { count, usd } from '@/format/number'
import { causeOf } from '@/task/causes'
import { asksPerson } from '@/task/question'
import { Avatar } from '@/ui/Avatar'
import { Badge, type Tone } from '@/ui/Badge'
import { cx } from '@/ui/cx'
import { Time } from '@/ui/Time'
import { StepBar } from './StepBar'
import { doing, livenessWords, pulseOf, SANDBOX_WORDS, stepName } from './steps'

export interface CardProps {
  task: Task
  execution?: Execution | undefined
  sandbox?: Sandbox | undefined
  pull?: PullRequest | undefined
  member?: Member | undefined
  repository?: Repository | undefined
  conflict?: Conflict | undefined
  /** Number of the task at the other side of the conflict. */
  rival?: number | undefined
  waitsFor?: number
  lifted?: boolean
  /** The grip and the check mark of the board, in the corner. */
  corner?: ReactNode
}

const PRIORITY: Record<number, { tone: Tone; name: string }> = { 2: { tone: 'warn', name: 'High' }, 3: { tone: 'danger', name: 'Urgent' } }

export const Card = memo(function Card(props: CardProps) {
  const { task, execution, repository, corner, lifted } = props
  const priority = PRIORITY[task.priority]
  const working = execution && task.status === 'in_progress' && !task.flag && !asksPerson(execution)
  return (
    <article className={cx('group/card relative rounded-lg border bg-surface px-3 pt-2.5 pb-3 text-sm shadow-card transition-[border-color,box-shadow] hover:border-line-strong hover:shadow-lift', lifted && 'rotate-[1.2deg] border-line-strong shadow-lift', task.status === 'done' && 'bg-surface/70')}>
      <div className="flex h-4 items-center gap-1.5 text-2xs text-faint">
        <span className="tabular font-medium">#{task.number}</span>
        {repository && <span className="min-w-0 truncate">{repository.name}</span>}
        <span className="ml-auto flex items-center gap-1.5">{corner}<Time at={task.created_at} short /></span>
      </div>
      <h3 className={cx('mt-1 leading-snug font-medium text-pretty', task.status === 'done' && 'text-muted')}>
        <Link
          to="/squads/$squadId/tasks/$number" params={{ squadId: task.squad_id, number: String(task.number) }} draggable={false}
          className="line-clamp-3 break-words after:absolute after:inset-0 after:rounded-lg focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:outline-accent"
        >
          {task.title}
        </Link>
      </h3>
      {(priority || (task.labels?.length ?? 0) > 0) && (
        <div className="mt-2 flex flex-wrap gap-1">
          {priority && <Badge tone={priority.tone}>{priority.name}</Badge>}
          {task.labels?.map((label) => <Badge key={label}>{label}</Badge>)}
        </div>
      )}
      <Trouble {...props} />
      {working && (
        <div className="mt-2.5 rounded-md bg-sunken px-2 pt-1.5 pb-2">
          <p className="mb-1.5 flex gap-1.5 text-2xs text-muted" title={livenessWords(execution)}>
            <span className="font-medium text-ink">{stepName(execution)}{execution.percent ? ` ${execution.percent}%` : ''}</span>
            <span className={cx('min-w-0', execution.status === 'queued' ? 'line-clamp-2' : 'truncate', execution.liveness?.state === 'command' && 'font-mono')}>{doing(execution)}</span>
          </p>
          <StepBar execution={execution} />
        </div>
      )}
      <Foot {...props} />
    </article>
  )
})

const FLAGS = {
  blocked: { icon: Ban, tone: 'text-warn', name: 'Blocked' },
  failed: { icon: OctagonX, tone: 'text-danger', name: 'Failed' },
  cancelled: { icon: CircleX, tone: 'text-faint', name: 'Cancelled' },
} as const

function Trouble({ task, execution, conflict, rival, waitsFor = 0 }: CardProps) {
  const files = conflict?.files ?? []
  const flag = task.flag ? FLAGS[task.flag] : undefined
  const cause = flag ? causeOf(task, execution) : undefined
  const asks = execution && !flag && asksPerson(execution)
  // In the queue the card names what it waits for, in its own line.
  const waits = waitsFor > 0 && !(execution?.status === 'queued' && doing(execution))
  if (!flag && !conflict && !waits && !asks) return null
  return (
    <ul className="mt-2 space-y-1 text-xs">
      {asks && <li className="flex gap-1.5 font-medium text-warn"><MessageCircleQuestion aria-hidden className="mt-0.5 size-3.5 shrink-0" />Asks you a question</li>}
      {flag && <li className={cx('flex gap-1.5', flag.tone)} title={cause?.detail}><flag.icon aria-hidden className="mt-0.5 size-3.5 shrink-0" /><span className="line-clamp-2"><b className="font-medium">{cause?.title ?? flag.name}</b>{cause?.title === flag.name && cause.detail && `: ${cause.detail}`}</span></li>}
      {conflict && <li className="flex gap-1.5 text-warn"><TriangleAlert aria-hidden className="mt-0.5 size-3.5 shrink-0" /><span className="truncate" title={files.join('\n')}>Overlaps with {rival ? `#${rival}` : 'its base'} in {files[0]}{files.length > 1 && ` +${files.length - 1}`}</span></li>}
      {waits && <li className="flex gap-1.5 text-muted"><Link2 aria-hidden className="mt-0.5 size-3.5 shrink-0" />Waits for {count(waitsFor, 'task')}</li>}
    </ul>
  )
}

const BOXES: Record<Sandbox['status'], string> = { created: 'text-info animate-breathe', running: 'text-ok', paused: 'text-warn', terminated: 'text-faint', error: 'text-danger' }

function Foot({ task, execution, member, sandbox, pull }: CardProps) {
  const branch = task.execution_id ? task.git_branch : undefined
  if (!member && !pull && !branch && !task.cost_usd && !execution) return null
  return (
    <div className="mt-2.5 flex items-center gap-2 text-xs text-muted">
      {member && <Avatar id={member.id} name={member.name} pulse={pulseOf(execution)} still />}
      {member && <span className={cx('truncate', branch || pull ? 'max-w-[45%] shrink-0' : 'min-w-0 flex-1')}>{member.name}</span>}
      {branch && <span className="flex min-w-0 flex-1 items-center gap-1 font-mono text-2xs text-faint" title={branch}><GitBranch aria-hidden className="size-3 shrink-0" /><span className="truncate">{branch}</span></span>}
      {!branch && <span className="flex-1" />}
      {sandbox && sandbox.status !== 'terminated' && (
        <span role="img" title={`Sandbox ${SANDBOX_WORDS[sandbox.status]}`} aria-label={`Sandbox ${SANDBOX_WORDS[sandbox.status]}`} className={cx('shrink-0', BOXES[sandbox.status])}><Box aria-hidden className="size-3.5" /></span>
      )}
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
