// The one place that turns events of the stream into the query cache. Each
// function is pure over the cached value; a row that nobody has loaded is left
// alone, because loading it later reads a state at least as new.
import { notifyManager, type QueryClient } from '@tanstack/react-query'
import { keys } from '@/api/keys'
import type { Conflict, SquadEvent } from '@/api/types'

/** Inserts or replaces the row with the same id; keeps the list when `newer` says no. */
export function upsert<T extends { id: string }>(list: T[] | undefined, row: T, newer: (old: T, next: T) => boolean = () => true): T[] | undefined {
  if (!list) return list
  const at = list.findIndex((item) => item.id === row.id)
  if (at < 0) return [...list, row]
  const old = list[at]
  if (old && !newer(old, row)) return list
  return list.with(at, row)
}

function without<T extends { id: string }>(list: T[] | undefined, id: string): T[] | undefined {
  return list?.some((item) => item.id === id) ? list.filter((item) => item.id !== id) : list
}

/** Joins two runs of events by number, each number once, in order. */
export function mergeEvents(have: SquadEvent[], more: SquadEvent[]): SquadEvent[] {
  if (more.length === 0) return have
  const last = have.at(-1)?.seq ?? 0
  const inOrder = more.every((event, i) => event.seq > (i === 0 ? last : (more[i - 1]?.seq ?? 0)))
  if (inOrder) return [...have, ...more]
  const bySeq = new Map(have.map((event) => [event.seq, event]))
  for (const event of more) bySeq.set(event.seq, event)
  return [...bySeq.values()].toSorted((a, b) => a.seq - b.seq)
}

export function withConflict(list: Conflict[] | undefined, conflict: Conflict, present: boolean): Conflict[] | undefined {
  if (!list) return list
  const rest = list.filter((c) => c.task_id !== conflict.task_id || (c.other_task_id ?? '') !== (conflict.other_task_id ?? ''))
  return present ? [...rest, conflict] : rest
}

type Dated = { id: string; updated_at: string }
const notOlder = (old: Dated, next: Dated) => next.updated_at >= old.updated_at
/** Git operations that are steps of the recipe and tell how far they are. */
const GIT_STEPS = new Set(['clone', 'push'])
const ACTIVE = new Set(['queued', 'running', 'waiting'])

/** Applies a run of events, in order, to the cache; whoever watches it hears of them once. */
export function applyEvents(cache: QueryClient, events: SquadEvent[]): void {
  notifyManager.batch(() => applyAll(cache, events))
}

function applyAll(cache: QueryClient, events: SquadEvent[]): void {
  const streams = new Map<string, SquadEvent[]>()
  for (const event of events) {
    applyRow(cache, event)
    if (event.execution_id) {
      const run = streams.get(event.execution_id)
      if (run) run.push(event)
      else streams.set(event.execution_id, [event])
    }
  }
  for (const [execution, run] of streams) {
    cache.setQueryData<SquadEvent[]>(keys.events(execution), (have) => (have ? mergeEvents(have, run) : have))
  }
}

function applyRow(cache: QueryClient, event: SquadEvent): void {
  const squad = event.squad_id ?? ''
  switch (event.type) {
    case 'squad_changed':
      cache.setQueryData(keys.squads, (list: typeof event.payload[] | undefined) => upsert(list, event.payload, notOlder))
      return
    case 'member_changed':
      replaceKnown(cache, keys.members(squad), event.payload)
      if (!event.payload.is_active) void cache.invalidateQueries({ queryKey: keys.members(squad) }) // on leave, or removed
      return
    case 'repository_changed':
      replaceKnown(cache, keys.repositories(squad), event.payload)
      return
    case 'task_created':
    case 'task_updated':
      cache.setQueryData(keys.tasks(squad), (list: typeof event.payload[] | undefined) =>
        upsert(list, event.payload, (old, next) => next.version >= old.version))
      return
    case 'task_deleted':
      cache.setQueryData(keys.tasks(squad), (list: { id: string }[] | undefined) => without(list, event.payload.id))
      return
    case 'execution_created':
    case 'execution_updated':
      applyExecution(cache, squad, event.payload)
      return
    case 'sandbox_created':
    case 'sandbox_status':
    case 'sandbox_terminated':
      cache.setQueryData(keys.sandboxes(squad), (list: typeof event.payload[] | undefined) => upsert(list, event.payload))
      cache.setQueryData(keys.allSandboxes, (list: typeof event.payload[] | undefined) => upsert(list, event.payload))
      return
    case 'message_sent':
      cache.setQueryData(keys.messages(squad), (list: typeof event.payload[] | undefined) => upsert(list, event.payload))
      return
    case 'pr_created':
    case 'pr_updated':
    case 'pr_merged':
    case 'pr_closed':
    case 'checks_changed':
      cache.setQueryData(keys.pulls(squad), (list: typeof event.payload[] | undefined) => upsert(list, event.payload, notOlder))
      void cache.invalidateQueries({ queryKey: keys.pullDiff(event.payload.id) })
      return
    case 'review_received':
      cache.setQueryData(keys.comments(event.payload.pull_id), (list: typeof event.payload[] | undefined) => upsert(list, event.payload))
      return
    case 'conflict_detected':
    case 'conflict_cleared':
      cache.setQueryData(keys.conflicts(squad), (list: Conflict[] | undefined) => withConflict(list, event.payload, event.type === 'conflict_detected'))
      return
    case 'step':
      if (event.payload.status === 'running' || event.payload.status === 'retrying') applyProgress(cache, event, event.payload.step, event.payload.percent ?? 0)
      return
    case 'git_operation':
      if (event.payload.status === 'running' && event.payload.percent && GIT_STEPS.has(event.payload.kind)) applyProgress(cache, event, event.payload.kind, event.payload.percent)
      return
    default:
      return
  }
}

// A row that the list does not hold is new, or was removed meanwhile: the list is read again.
function replaceKnown<T extends Dated>(cache: QueryClient, queryKey: readonly string[], row: T): void {
  const list = cache.getQueryData<T[]>(queryKey)
  if (list && !list.some(({ id }) => id === row.id)) void cache.invalidateQueries({ queryKey })
  else cache.setQueryData<T[]>(queryKey, (have) => upsert(have, row, notOlder))
}

type ExecutionEvent = Extract<SquadEvent, { type: 'execution_updated' | 'execution_created' }>
type Execution = ExecutionEvent['payload']

function applyExecution(cache: QueryClient, squad: string, row: Execution): void {
  cache.setQueryData(keys.active(squad), (list: Execution[] | undefined) => (ACTIVE.has(row.status) ? upsert(list, row) : without(list, row.id)))
  cache.setQueryData(keys.executionsOf(row.task_id), (list: Execution[] | undefined) => upsert(list, row))
  if (row.member_id) cache.setQueryData(keys.executionsBy(row.member_id), (list: Execution[] | undefined) => upsert(list, row))
  cache.setQueryData(keys.execution(row.id), (old: Execution | undefined) => old && row)
}

// Progress arrives more often than the row; it moves the bar at once.
function applyProgress(cache: QueryClient, event: SquadEvent, step: string, percent: number): void {
  const patch = (list: Execution[] | undefined) => {
    const at = list?.findIndex((row) => row.id === event.execution_id) ?? -1
    const row = list?.[at]
    return list && row ? list.with(at, { ...row, step, percent }) : list
  }
  cache.setQueryData(keys.active(event.squad_id ?? ''), patch)
  if (event.task_id) cache.setQueryData(keys.executionsOf(event.task_id), patch)
}
