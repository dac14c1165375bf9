import { queryOptions } from '@tanstack/react-query'
import { all, api } from './client'
import { keys } from './keys'
import type { SquadEvent } from './types'

/** Everything an execution has said so far; the stream appends what follows. */
export const eventsQuery = (execution: string) =>
  queryOptions({
    queryKey: keys.events(execution),
    staleTime: Infinity,
    queryFn: ({ signal }) => all<SquadEvent>('/events', { execution_id: execution, limit: 1000 }, 100_000, signal),
  })

/** Number of the newest event: the stream begins behind it. */
export async function newestSeq(): Promise<number> {
  const stats = await api<{ last_seq?: number }>('/sse/stats')
  return stats.last_seq ?? 0
}
