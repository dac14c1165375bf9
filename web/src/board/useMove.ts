import { useMutation, useQueryClient } from '@tanstack/react-query'
import { wordsOf } from '@/api/client'
import { keys } from '@/api/keys'
import { moveTask } from '@/api/tasks'
import type { Task, TaskStatus } from '@/api/types'
import { upsert } from '@/live/reduce'
import { say } from '@/ui/toast'
import { columnName } from './order'

export interface Move { task: Task; to: TaskStatus; position: number }

/** Moves a card at once and puts it back, with the reason, when the server refuses. */
export function useMove(squad: string) {
  const cache = useQueryClient()
  const key = keys.tasks(squad)
  return useMutation({
    mutationFn: ({ task, to, position }: Move) => moveTask(task.id, to, position),
    meta: { quiet: true },
    onMutate: ({ task, to, position }) => {
      cache.setQueryData<Task[]>(key, (list) => upsert(list, { ...task, status: to, position }))
    },
    onSuccess: (task) => {
      cache.setQueryData<Task[]>(key, (list) => upsert(list, task, (old, next) => next.version >= old.version))
    },
    onError: (error, { task, to }) => {
      cache.setQueryData<Task[]>(key, (list) => upsert(list, task, (old) => old.version <= task.version))
      say(`#${task.number} stays in ${columnName(task.status)}`, 'danger', `It cannot go to ${columnName(to)}: ${wordsOf(error)}`)
    },
  })
}
