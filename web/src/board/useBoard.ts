import { useQuery } from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'
import { pullsQuery } from '@/api/pulls'
import { sandboxesQuery } from '@/api/sandboxes'
import { conflictsQuery, membersQuery, repositoriesQuery } from '@/api/squads'
import { activeQuery, tasksQuery } from '@/api/tasks'
import type { Execution, Task } from '@/api/types'
import { asksPerson } from '@/task/question'
import type { CardProps } from './Card'
import { conflictsByTask, rivalOf } from './conflicts'

const index = <T, K>(list: T[] | undefined, key: (item: T) => K | undefined): Map<K, T> => {
  const map = new Map<K, T>()
  for (const item of list ?? []) {
    const at = key(item)
    if (at !== undefined) map.set(at, item)
  }
  return map
}

/** Tasks that only a person can move on: to review, to answer, to mend. */
const waitsForPerson = (tasks: Task[], executions: Map<string, Execution>) => tasks.filter((task) => {
  if (task.status === 'done') return false
  const execution = executions.get(task.id)
  return task.status === 'in_review' || task.flag === 'failed' || (execution !== undefined && asksPerson(execution))
}).length

/** Everything the board shows. Rows keep their identity while they do not change, so that only changed cards render. */
export function useBoard(squad: string) {
  const tasks = useQuery(tasksQuery(squad))
  const members = useQuery(membersQuery(squad))
  const repositories = useQuery(repositoriesQuery(squad))
  const active = useQuery(activeQuery(squad))
  const sandboxes = useQuery(sandboxesQuery(squad))
  const pulls = useQuery(pullsQuery(squad))
  const conflicts = useQuery(conflictsQuery(squad, (repositories.data ?? []).map((repository) => repository.id)))

  const memberById = useMemo(() => index(members.data, (m) => m.id), [members.data])
  const repositoryById = useMemo(() => index(repositories.data, (r) => r.id), [repositories.data])
  const executionByTask = useMemo(() => index(active.data, (e) => e.task_id), [active.data])
  const sandboxById = useMemo(() => index(sandboxes.data, (s) => s.id), [sandboxes.data])
  const pullByTask = useMemo(() => index(pulls.data, (p) => p.task_id), [pulls.data])
  const conflictByTask = useMemo(() => conflictsByTask(conflicts.data ?? []), [conflicts.data])
  const taskById = useMemo(() => index(tasks.data, (t) => t.id), [tasks.data])

  const cardOf = useCallback((task: Task): CardProps => {
    const execution = executionByTask.get(task.id)
    const waitsFor = task.status === 'done' ? 0 : (task.depends_on ?? []).filter((id) => taskById.get(id)?.status !== 'done').length
    return {
      task,
      execution,
      waitsFor,
      sandbox: execution?.sandbox_id ? sandboxById.get(execution.sandbox_id) : undefined,
      pull: pullByTask.get(task.id),
      member: memberById.get(execution?.member_id ?? task.assignee_id ?? ''),
      repository: task.repository_id ? repositoryById.get(task.repository_id) : undefined,
      conflict: conflictByTask.get(task.id),
      rival: taskById.get(rivalOf(conflictByTask.get(task.id), task.id))?.number,
    }
  }, [executionByTask, taskById, sandboxById, pullByTask, memberById, repositoryById, conflictByTask])
  const working = useMemo(() => (active.data ?? []).filter((each) => each.status === 'running').length, [active.data])
  const waiting = useMemo(() => waitsForPerson(tasks.data ?? [], executionByTask), [tasks.data, executionByTask])
  return { tasks, working, waiting, members: members.data ?? [], repositories: repositories.data ?? [], taskById, cardOf }
}
