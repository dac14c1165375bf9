import { useMutation, useQueryClient } from '@tanstack/react-query'
import { keys } from '@/api/keys'
import { cancelTask, changeTask, deleteTask, forkTask, keepExecution, retryTask, runTask } from '@/api/tasks'
import type { Execution, Task, TaskChange } from '@/api/types'
import { upsert } from '@/live/reduce'
import { say } from '@/ui/toast'

/** The verbs on one task. Answers go into the cache; the stream brings the rest. */
export function useTaskVerbs(task: Task) {
  const cache = useQueryClient()
  const take = (row: Task) => cache.setQueryData<Task[]>(keys.tasks(task.squad_id), (list) => upsert(list, row, (old, next) => next.version >= old.version))
  const started = (execution: Execution) => cache.setQueryData<Execution[]>(keys.executionsOf(task.id), (list) => upsert(list, execution))
  return {
    change: useMutation({ mutationFn: (change: TaskChange) => changeTask(task, change), onSuccess: take, meta: { failed: `#${task.number} was not changed` } }),
    run: useMutation({ mutationFn: () => runTask(task.id), onSuccess: (execution) => { started(execution); say(`#${task.number} starts`) }, meta: { failed: `#${task.number} did not start` } }),
    retry: useMutation({ mutationFn: (message: string) => retryTask(task.id, message ? { message } : {}), onSuccess: (execution) => { started(execution); say(`#${task.number} is tried again`) }, meta: { failed: `#${task.number} did not start again` } }),
    cancel: useMutation({ mutationFn: (cause: string) => cancelTask(task.id, cause), onSuccess: (row) => { take(row); say(`#${task.number} was cancelled`) }, meta: { failed: `#${task.number} goes on` } }),
    fork: useMutation({ mutationFn: (ways: number) => forkTask(task.id, ways), onSuccess: ({ items }) => { items.forEach(started); say(`#${task.number} is tried ${items.length} ways`) }, meta: { failed: 'It was not forked' } }),
    keep: useMutation({ mutationFn: (execution: string) => keepExecution(execution), onSuccess: started, meta: { failed: 'It was not chosen' } }),
    remove: useMutation({ mutationFn: () => deleteTask(task.id), meta: { failed: `#${task.number} was not deleted` } }),
  }
}
