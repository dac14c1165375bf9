import { queryOptions } from '@tanstack/react-query'
import { all, api } from './client'
import { keys } from './keys'
import type { BulkResult, Diff, Execution, Message, NewTask, Task, TaskBulk, TaskChange, TaskStatus } from './types'

export const tasksQuery = (squad: string) =>
  queryOptions({ queryKey: keys.tasks(squad), queryFn: ({ signal }) => all<Task>('/tasks', { squad_id: squad }, 5000, signal) })

/** Executions that have not ended: what the board shows on its cards. */
export const activeQuery = (squad: string) =>
  queryOptions({
    queryKey: keys.active(squad),
    queryFn: ({ signal }) => all<Execution>('/executions', { squad_id: squad, live: true }, 5000, signal),
  })

export const executionsQuery = (task: string) =>
  queryOptions({ queryKey: keys.executionsOf(task), queryFn: ({ signal }) => all<Execution>('/executions', { task_id: task }, 500, signal) })

export const taskDiffQuery = (task: string) => queryOptions({ queryKey: keys.taskDiff(task), queryFn: ({ signal }) => api<Diff>(`/tasks/${task}/diff`, { signal }) })


/** The same while an agent works: what it committed and whether it runs are part of the question. */
export const liveDiffQuery = ({ id, task_id: task, status, head_sha: head }: Execution) =>
  queryOptions({ queryKey: [...keys.taskDiff(task), id, status, head] as const, staleTime: 0, queryFn: ({ signal }) => api<Diff>(`/tasks/${task}/diff`, { signal }) })

export const createTask = (body: NewTask) => api<Task>('/tasks', { method: 'POST', body, once: true })
export const changeTask = (task: Task, body: TaskChange) =>
  api<Task>(`/tasks/${task.id}`, { method: 'PATCH', body, ifMatch: `"${task.version}"` })
export const moveTask = (id: string, status: TaskStatus, position?: number) =>
  api<Task>(`/tasks/${id}/move`, { method: 'POST', body: { status, ...(position !== undefined && { position }) } })
export const deleteTask = (id: string) => api<void>(`/tasks/${id}`, { method: 'DELETE' })

export const bulkTasks = async (body: TaskBulk): Promise<BulkResult[]> => (await api<{ items: BulkResult[] }>('/tasks/bulk', { method: 'POST', body })).items

export const runTask = (id: string, body: { member_id?: string; message?: string } = {}) => api<Execution>(`/tasks/${id}/run`, { method: 'POST', body })
export const retryTask = (id: string, body: { member_id?: string; message?: string } = {}) => api<Execution>(`/tasks/${id}/retry`, { method: 'POST', body })
export const cancelTask = (id: string, cause: string) => api<Task>(`/tasks/${id}/cancel`, { method: 'POST', body: { cause } })
export const forkTask = (id: string, count: number) => api<{ items: Execution[] }>(`/tasks/${id}/fork`, { method: 'POST', body: { count } })
export const nudgeTask = (id: string, text: string) => api<Message>(`/tasks/${id}/nudge`, { method: 'POST', body: { text } })
export const keepExecution = (id: string) => api<Execution>(`/executions/${id}/keep`, { method: 'POST', body: {} })
export const cancelCommand = (id: string) => api<void>(`/executions/${id}/cancel-command`, { method: 'POST', body: {} })

export const memberExecutionsQuery = (member: string) =>
  queryOptions({ queryKey: keys.executionsBy(member), queryFn: ({ signal }) => all<Execution>('/executions', { member_id: member, newest: true, limit: 50 }, 50, signal) })
export const cancelExecution = (id: string, cause: string) => api<Execution>(`/executions/${id}/cancel`, { method: 'POST', body: { cause } })
