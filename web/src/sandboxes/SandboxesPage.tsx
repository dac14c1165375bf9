import { useQuery } from '@tanstack/react-query'
import { Box, Plus } from 'lucide-react'
import { useState } from 'react'
import { allSandboxesQuery, poolQuery } from '@/api/sandboxes'
import { membersQuery, repositoriesQuery, squadsQuery } from '@/api/squads'
import { tasksQuery } from '@/api/tasks'
import { Header } from '@/app/Header'
import { useMay } from '@/app/may'
import { useSquad } from '@/app/SquadContext'
import { count, percent, usd } from '@/format/number'
import { Button } from '@/ui/Button'
import { Segmented } from '@/ui/Segmented'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { NewSandboxDialog } from './NewSandboxDialog'
import { SandboxRow } from './SandboxRow'

type Shown = 'live' | 'lost' | 'all'

export function SandboxesPage() {
  const squad = useSquad()
  const sandboxes = useQuery(allSandboxesQuery)
  const members = useQuery(membersQuery(squad.id))
  const tasks = useQuery(tasksQuery(squad.id))
  const squads = useQuery(squadsQuery)
  const [shown, setShown] = useState<Shown>('live')
  const [adding, setAdding] = useState(false)
  const may = useMay(squad.id, 'member')
  const all = (sandboxes.data ?? []).toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
  const live = all.filter((each) => each.status === 'running' || each.status === 'paused' || each.status === 'created')
  const lost = all.filter((each) => each.status === 'error' || each.error)
  const rows = shown === 'live' ? live : shown === 'lost' ? lost : all
  return (
    <>
      <Header title="Sandboxes" about={sandboxes.data && `${count(live.length, 'sandbox', 'sandboxes')} alive, ${usd(live.reduce((sum, each) => sum + each.cost_usd, 0))}`}>
        <Segmented label="Which sandboxes" value={shown} onChange={setShown} options={[{ value: 'live', label: `Alive ${live.length}` }, { value: 'lost', label: `Lost ${lost.length}` }, { value: 'all', label: 'All' }]} />
        {may && <Button look="primary" onClick={() => setAdding(true)}><Plus aria-hidden className="size-4" />New sandbox</Button>}
      </Header>
      <div className="min-h-0 flex-1 space-y-4 overflow-y-auto p-4 sm:p-5">
        <Pools />
        {sandboxes.isPending && <Rows what="the sandboxes" />}
        {sandboxes.isError && !sandboxes.data && <ErrorState error={sandboxes.error} what="The sandboxes" retry={() => void sandboxes.refetch()} />}
        {sandboxes.data && rows.length === 0 && (
          <Empty icon={<Box aria-hidden />} title={shown === 'lost' ? 'None was lost' : 'No sandbox is alive'}>{shown === 'lost' ? 'Sandboxes that died, and orphans that the reaper found at a provider and destroyed, are listed here.' : 'One opens as soon as a task starts.'}</Empty>
        )}
        {rows.length > 0 && (
          <ul className="divide-y rounded-lg border bg-surface shadow-card">
            {rows.map((each) => (
              <SandboxRow
                key={each.id} sandbox={each}
                member={members.data?.find((member) => member.id === each.agent_id)}
                task={tasks.data?.find((task) => task.id === each.task_id)}
                foreign={each.squad_id && each.squad_id !== squad.id ? (squads.data?.find((other) => other.id === each.squad_id)?.name ?? 'another squad') : undefined}
              />
            ))}
          </ul>
        )}
      </div>
      {adding && <NewSandboxDialog squad={squad.id} onClose={() => setAdding(false)} />}
    </>
  )
}

function Pools() {
  const pool = useQuery(poolQuery)
  const repositories = useQuery(repositoriesQuery(useSquad().id))
  // A pool is prepared for a commit of a repository: <id>@<commit>.
  const prepared = (key?: string) => {
    const [id, commit] = key?.split('@') ?? []
    const repository = repositories.data?.find((each) => each.id === id)
    return repository && commit ? ` · ${repository.name} at ${commit.slice(0, 7)}` : key && ' · another squad’s'
  }
  if (!pool.data || pool.data.length === 0) return null
  return (
    <ul aria-label="Warm pools" className="flex flex-wrap gap-3">
      {pool.data.map((each) => (
        <li key={`${each.provider}/${each.template}/${each.key ?? ''}`} className="rounded-lg border bg-surface px-4 py-3 text-sm shadow-card">
          <p className="text-xs text-muted">Warm pool · {each.provider}/{each.template}{prepared(each.key)}</p>
          <p className="mt-1"><b className="tabular text-lg font-semibold">{each.waiting}</b> <span className="text-muted">waiting of {each.min}–{each.max}</span> <span className="ml-3 text-muted">hit rate <b className="tabular font-medium text-ink">{percent(each.hits, each.hits + each.misses)}</b></span></p>
        </li>
      ))}
    </ul>
  )
}
