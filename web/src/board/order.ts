// The order of the board: columns, places inside a column, and filters.
import type { Task, TaskStatus } from '@/api/types'

export const COLUMNS: { status: TaskStatus; name: string }[] = [
  { status: 'backlog', name: 'Backlog' },
  { status: 'todo', name: 'Todo' },
  { status: 'in_progress', name: 'In progress' },
  { status: 'in_review', name: 'In review' },
  { status: 'done', name: 'Done' },
]

export const columnName = (status: TaskStatus) => COLUMNS.find((column) => column.status === status)?.name ?? status

export type Columns = Record<TaskStatus, Task[]>

const byPlace = (a: Task, b: Task) => a.position - b.position || a.number - b.number
const byFreshness = (a: Task, b: Task) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : b.number - a.number)

/** Tasks by column, each in its order. Done shows what was finished last first. */
export function columnsOf(tasks: Task[]): Columns {
  const columns: Columns = { backlog: [], todo: [], in_progress: [], in_review: [], done: [] }
  for (const task of tasks) columns[task.status]?.push(task)
  for (const { status } of COLUMNS) columns[status].sort(status === 'done' ? byFreshness : byPlace)
  return columns
}

/** The column in which things happen: shown first where only one fits. */
export function firstColumn(columns: Columns): TaskStatus {
  const order: TaskStatus[] = ['in_progress', 'in_review', 'todo', 'backlog', 'done']
  return order.find((status) => columns[status].length > 0) ?? 'todo'
}

/** A place between two neighbours; outside of them when one is missing. */
export function placeBetween(before: number | undefined, after: number | undefined): number {
  if (before === undefined && after === undefined) return 1
  if (before === undefined) return (after ?? 0) - 1
  if (after === undefined) return before + 1
  return (before + after) / 2
}

/** The place that puts a task at `index` of a column that does not count the task itself. */
export function placeAt(column: Task[], index: number, moving: string): number {
  const others = column.filter((task) => task.id !== moving)
  return placeBetween(others[index - 1]?.position, others[index]?.position)
}

export interface Filter { member?: string; repository?: string; label?: string; text?: string }

export function matches(task: Task, filter: Filter): boolean {
  if (filter.member && task.assignee_id !== filter.member) return false
  if (filter.repository && task.repository_id !== filter.repository) return false
  if (filter.label && !task.labels?.includes(filter.label)) return false
  if (!filter.text) return true
  const wanted = filter.text.toLowerCase()
  return `#${task.number} ${task.title} ${task.git_branch ?? ''}`.toLowerCase().includes(wanted)
}

export function labelsOf(tasks: Task[]): string[] {
  return [...new Set(tasks.flatMap((task) => task.labels ?? []))].toSorted()
}
