import { useQuery } from '@tanstack/react-query'
import { GitBranch, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { conflictsQuery, membersQuery, repositoriesQuery } from '@/api/squads'
import { tasksQuery } from '@/api/tasks'
import type { Task } from '@/api/types'
import { useMay } from '@/app/may'
import { usd } from '@/format/number'
import { Field, Select } from '@/ui/Field'
import { Time } from '@/ui/Time'
import { Budget, Dependencies, Labels } from './PropertyFields'
import { useTaskVerbs } from './useTaskVerbs'

export function Properties({ task }: { task: Task }) {
  const members = useQuery(membersQuery(task.squad_id))
  const repositories = useQuery(repositoriesQuery(task.squad_id))
  const tasks = useQuery(tasksQuery(task.squad_id))
  const conflicts = useQuery(conflictsQuery(task.squad_id, (repositories.data ?? []).map((each) => each.id)))
  const { change } = useTaskVerbs(task)
  const may = useMay(task.squad_id, 'member')
  const before = (task.depends_on ?? []).map((id) => tasks.data?.find((each) => each.id === id)).filter((each) => each !== undefined)
  const overlaps = (conflicts.data ?? []).filter((each) => each.task_id === task.id || each.other_task_id === task.id)
  return (
    <aside aria-label="Properties" className="text-sm lg:border-l lg:pl-6">
      <fieldset disabled={!may} className="space-y-4">
        <Field label="Member">
          {(id) => (
            <Select id={id} value={task.assignee_id ?? ''} onChange={(event) => change.mutate({ assignee_id: event.target.value })}>
              <option value="">Whoever is free</option>
              {(members.data ?? []).map((member) => <option key={member.id} value={member.id}>{member.name}</option>)}
            </Select>
          )}
        </Field>
        <Field label="Repository">
          {(id) => (
            <Select id={id} value={task.repository_id ?? ''} disabled={Boolean(task.git_branch)} onChange={(event) => change.mutate({ repository_id: event.target.value })}>
              <option value="">None</option>
              {(repositories.data ?? []).map((repository) => <option key={repository.id} value={repository.id}>{repository.name}</option>)}
            </Select>
          )}
        </Field>
        <Field label="Priority">
          {(id) => (
            <Select id={id} value={task.priority} onChange={(event) => change.mutate({ priority: Number(event.target.value) })}>
              <option value="0">Low</option><option value="1">Normal</option><option value="2">High</option><option value="3">Urgent</option>
            </Select>
          )}
        </Field>
        <Labels key={(task.labels ?? []).join()} labels={task.labels ?? []} onChange={(labels) => change.mutate({ labels })} />
        {task.git_branch && <Row name="Branch"><span className="flex items-center gap-1.5 font-mono text-xs"><GitBranch aria-hidden className="size-3.5 text-faint" />{task.git_branch}</span></Row>}
        <Row name="Spent"><span className="tabular">{usd(task.cost_usd)}{task.budget?.task_usd ? <span className="text-faint"> of {usd(task.budget.task_usd)}</span> : null}</span></Row>
        <Budget key={task.budget?.task_usd ?? 0} amount={task.budget?.task_usd} onChange={(amount) => change.mutate({ budget: { ...task.budget, task_usd: amount } })} />
        <Dependencies task={task} before={before} tasks={tasks.data ?? []} onChange={(ids) => change.mutate({ depends_on: ids })} />
        {overlaps.map((overlap) => {
          const otherId = overlap.task_id === task.id ? overlap.other_task_id : overlap.task_id
          const other = tasks.data?.find((each) => each.id === otherId)
          return (
            <div key={`${overlap.task_id}/${overlap.other_task_id}`} className="rounded-lg bg-warn-soft p-3 text-xs text-warn">
              <p className="flex items-center gap-1.5 font-medium"><TriangleAlert aria-hidden className="size-3.5" />Overlaps with {other ? `#${other.number}` : 'the base branch'}</p>
              <ul className="mt-1 font-mono break-all">{(overlap.files ?? []).slice(0, 6).map((file) => <li key={file}>{file}</li>)}</ul>
            </div>
          )
        })}
        <Row name="Added"><Time at={task.created_at} /></Row>
        <Row name="Changed"><Time at={task.updated_at} /></Row>
      </fieldset>
    </aside>
  )
}

function Row({ name, children }: { name: string; children: ReactNode }) {
  return <div><p className="mb-1 text-xs font-medium text-muted">{name}</p>{children}</div>
}
