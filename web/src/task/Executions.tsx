import { useQuery } from '@tanstack/react-query'
import { ChevronDown } from 'lucide-react'
import { useState } from 'react'
import { membersQuery } from '@/api/squads'
import { executionsQuery } from '@/api/tasks'
import type { Execution, Member, Task } from '@/api/types'
import { StepBar } from '@/board/StepBar'
import { doing, livenessWords, pulseOf } from '@/board/steps'
import { compact, usd } from '@/format/number'
import { span } from '@/format/time'
import { Avatar } from '@/ui/Avatar'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { cx } from '@/ui/cx'
import { ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { useNow } from '@/ui/useNow'
import { plain } from './causes'
import { Commits } from './Commits'
import { Timeline } from './Timeline'
import { EXECUTION_TONES } from './tones'
import { isDecided, waysOf } from './ways'
import { Ways } from './Ways'

export function Executions({ task }: { task: Task }) {
  const executions = useQuery(executionsQuery(task.id))
  const members = useQuery(membersQuery(task.squad_id))
  const rows = (executions.data ?? []).toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
  const ways = waysOf(rows)
  const forked = new Set(rows.filter((row) => row.lane).map((row) => row.attempt))
  return (
    <>
      {ways.length > 0 && !isDecided(ways) && <Ways task={task} ways={ways} />}
      <section aria-label="Executions">
        <h3 className="mb-3 text-base font-semibold">Work</h3>
        {executions.isPending && <Rows n={2} what="executions" />}
        {executions.isError && !executions.data && <ErrorState error={executions.error} what="The executions" retry={() => void executions.refetch()} />}
        {executions.data?.length === 0 && <p className="rounded-lg border border-dashed p-6 text-center text-sm text-muted">Nobody has worked on this yet. Start it, or move its card to “In progress”.</p>}
        <ol className="space-y-3">
          {rows.map((row, i) => <Row key={row.id} execution={row} way={forked.has(row.attempt) ? (row.lane ?? 0) + 1 : 0} member={members.data?.find((each) => each.id === row.member_id)} open={i === 0 && ways.length === 0} />)}
        </ol>
      </section>
    </>
  )
}

interface RowProps { execution: Execution; way: number; member: Member | undefined; open: boolean }

function Row({ execution, way, member, open: first }: RowProps) {
  const [open, setOpen] = useState(first)
  const now = useNow()
  const took = execution.started_at ? span(Date.parse(execution.finished_at ?? new Date(now).toISOString()) - Date.parse(execution.started_at)) : ''
  const live = execution.status === 'running'
  return (
    <li className="overflow-hidden rounded-lg border bg-surface shadow-card">
      <div className="flex items-center gap-3 p-3">
        {member && <Avatar id={member.id} name={member.name} size={28} pulse={pulseOf(execution)} />}
        <div className="min-w-0 flex-1">
          <p className="flex flex-wrap items-center gap-x-2 text-sm">
            <b className="font-medium">{member?.name ?? 'Nobody yet'}</b>
            <Badge tone={EXECUTION_TONES[execution.status]}>{execution.status}</Badge>
            <span className="text-muted">attempt {execution.attempt}{way > 0 && `, way ${way}`}{execution.turn > 1 && `, turn ${execution.turn}`}</span>
          </p>
          <p className="truncate text-xs text-muted">{live || doing(execution) && execution.status === 'queued' ? livenessWords(execution) : <Time at={execution.finished_at ?? execution.created_at} />}</p>
        </div>
        <dl className="hidden gap-5 text-right text-xs sm:flex">
          <Fact name="took" value={took} />
          <Fact name="tokens" value={compact(execution.tokens_in + execution.tokens_out)} />
          <Fact name="cost" value={usd(execution.model_cost_usd + execution.sandbox_cost_usd)} />
        </dl>
        <Button look="quiet" size="icon" aria-expanded={open} aria-label={open ? 'Hide the timeline' : 'Show the timeline'} onClick={() => setOpen(!open)}><ChevronDown aria-hidden className={cx('size-4 transition-transform', open && 'rotate-180')} /></Button>
      </div>
      {live && <div className="px-3 pb-3"><StepBar execution={execution} named /></div>}
      {execution.error && <p role="status" className="border-t bg-danger-soft px-3 py-2 text-sm break-words text-danger">{plain(execution.error)}</p>}
      {open && (
        <div className="grid gap-6 border-t bg-canvas p-4 md:grid-cols-2">
          <Timeline execution={execution} />
          <Commits commits={execution.commit_history ?? []} />
        </div>
      )}
    </li>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  return <div><dt className="text-faint">{name}</dt><dd className="tabular font-medium">{value || '–'}</dd></div>
}
