import type { Conflict } from '@/api/types'

/** The overlap of each task. One between two tasks is the trouble of both. */
export function conflictsByTask(conflicts: Conflict[]): Map<string, Conflict> {
  const map = new Map<string, Conflict>()
  for (const conflict of conflicts) {
    if (conflict.other_task_id && !map.has(conflict.other_task_id)) map.set(conflict.other_task_id, conflict)
    map.set(conflict.task_id, conflict)
  }
  return map
}

/** The other task of an overlap; empty where it is the base branch. */
export function rivalOf(conflict: Conflict | undefined, task: string): string {
  if (!conflict) return ''
  return (conflict.task_id === task ? conflict.other_task_id : conflict.task_id) ?? ''
}
