import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { conflictsQuery, membersQuery, repositoriesQuery } from '@/api/squads'
import { gitOperationsQuery, insightsQuery, usageQuery } from '@/api/system'
import { tasksQuery } from '@/api/tasks'
import { Header } from '@/app/Header'
import { useSquad } from '@/app/SquadContext'
import { compact, percent, usd } from '@/format/number'
import { span } from '@/format/time'
import { Segmented } from '@/ui/Segmented'
import { ErrorState, Skeleton } from '@/ui/States'
import { DayBars } from './DayBars'
import { GitRates } from './GitRates'
import { Ranking } from './Ranking'
import { everyDay } from './days'

export function InsightsPage() {
  const squad = useSquad()
  const [days, setDays] = useState<'7' | '14' | '30'>('14')
  const period = Number(days)
  const figures = useQuery(insightsQuery(squad.id, period))
  const byDay = useQuery(usageQuery(squad.id, 'day', period))
  const byMember = useQuery(usageQuery(squad.id, 'member', period))
  const byTask = useQuery(usageQuery(squad.id, 'task', period))
  const members = useQuery(membersQuery(squad.id))
  const tasks = useQuery(tasksQuery(squad.id))
  const git = useQuery(gitOperationsQuery(squad.id))
  const repositories = useQuery(repositoriesQuery(squad.id))
  const conflicts = useQuery(conflictsQuery(squad.id, (repositories.data ?? []).map((each) => each.id)))
  const f = figures.data
  const memberName = (id: string) => members.data?.find((each) => each.id === id)?.name ?? 'someone who left'
  const taskName = (id: string) => {
    const task = tasks.data?.find((each) => each.id === id)
    return task ? `#${task.number} ${task.title}` : 'a deleted task'
  }
  const ended = (f?.executions.succeeded ?? 0) + (f?.executions.failed ?? 0) + (f?.executions.cancelled ?? 0)
  return (
    <>
      <Header title="Insights">
        <Segmented label="Period" value={days} onChange={setDays} options={[{ value: '7', label: '7 days' }, { value: '14', label: '14 days' }, { value: '30', label: '30 days' }]} />
      </Header>
      <div tabIndex={0} role="region" aria-label="Figures" className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-6xl space-y-5 p-4 sm:p-6">
          {figures.isError && <ErrorState error={figures.error} what="The figures" retry={() => void figures.refetch()} />}
          <dl className="grid grid-cols-2 gap-3 lg:grid-cols-6">
            <Figure name="Spent" value={f && usd(f.cost_usd)} about="models and sandboxes" />
            <Figure name="Tokens" value={f && compact(f.tokens_in + f.tokens_out)} about={f ? `${compact(f.tokens_out)} written` : ''} />
            <Figure name="Runs that succeeded" value={f && percent(f.executions.succeeded ?? 0, ended)} about={f ? `${ended} ended` : ''} />
            <Figure name="Sandbox start" value={f && (f.start_ms.count ? span(f.start_ms.p50) : '–')} about={f?.start_ms.count ? `95% under ${span(f.start_ms.p95)}` : 'none started'} />
            <Figure name="Length of a run" value={f && (f.duration_ms.count ? span(f.duration_ms.p50) : '–')} about={f?.duration_ms.count ? `95% under ${span(f.duration_ms.p95)}` : 'none ended'} />
            <Figure name="Overlaps now" value={String(conflicts.data?.length ?? 0)} about={f ? `${f.pulls.merged ?? 0} merged, ${f.pulls.open ?? 0} open` : ''} />
          </dl>
          <Panel title="Cost by day">{byDay.data ? <DayBars rows={everyDay(byDay.data, period)} /> : <Skeleton className="h-48" />}</Panel>
          <div className="grid grid-cols-[minmax(0,1fr)] gap-5 lg:grid-cols-2">
            <Panel title="By member">{byMember.data ? <Ranking rows={byMember.data} nameOf={memberName} /> : <Skeleton className="h-32" />}</Panel>
            <Panel title="By task">{byTask.data ? <Ranking rows={byTask.data} nameOf={taskName} /> : <Skeleton className="h-32" />}</Panel>
          </div>
          <Panel title="Git operations">{git.data ? <GitRates operations={git.data} /> : <Skeleton className="h-32" />}</Panel>
        </div>
      </div>
    </>
  )
}

function Figure({ name, value, about }: { name: string; value: string | undefined; about: string }) {
  return (
    <div className="rounded-lg border bg-surface p-4 shadow-card">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="tabular mt-1 text-xl font-semibold tracking-tight">{value ?? <Skeleton className="h-7 w-20" />}</dd>
      <dd className="text-xs text-faint">{about}</dd>
    </div>
  )
}

function Panel({ title, children }: { title: string; children: React.ReactNode }) {
  return <section aria-label={title} className="rounded-lg border bg-surface p-4 shadow-card sm:p-5"><h2 className="mb-4 text-sm font-semibold">{title}</h2>{children}</section>
}
