import type { Execution } from '@/api/types'

const LIVE = new Set(['queued', 'running', 'waiting'])

/** The tries of a fork that is not decided yet, in the order of their lanes. */
export function waysOf(executions: Execution[]): Execution[] {
  const newest = Math.max(0, ...executions.map((each) => each.attempt))
  const group = executions.filter((each) => each.attempt === newest).toSorted((a, b) => (a.lane ?? 0) - (b.lane ?? 0))
  return group.length > 1 && group.some((each) => each.lane) && group.some((each) => LIVE.has(each.status)) ? group : []
}

/** Decided once all but one were given up because that one was kept. */
export const isDecided = (ways: Execution[]) => ways.length > 0 && ways.filter((each) => each.status !== 'cancelled').length === 1
