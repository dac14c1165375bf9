import { QueryClient } from '@tanstack/react-query'
import { describe, expect, test } from 'vitest'
import { keys } from '@/api/keys'
import type { SquadEvent, Task } from '@/api/types'
import { aTask, eventOf, gate } from '@/test/make'
import { applyEvents } from './reduce'
import { Replay } from './replay'

const event = (seq: number) => eventOf(seq, 'log', { stream: 'stdout', text: '' })

describe('events during a load', () => {
  test('are given to that load, and only those since it began', () => {
    const replay = new Replay()
    replay.keep([event(1)])
    replay.began('a')
    replay.keep([event(2)])
    replay.began('b')
    replay.keep([event(3)])
    expect(replay.ended('a').map((e) => e.seq)).toEqual([2, 3])
    expect(replay.ended('b').map((e) => e.seq)).toEqual([3])
    expect(replay.ended('b')).toEqual([])
  })

  test('a change that races with a list is not lost', async () => {
    const cache = new QueryClient()
    const replay = new Replay()
    replay.watch(cache.getQueryCache(), (events) => applyEvents(cache, events))
    const answer = gate<Task[]>()
    const load = cache.fetchQuery({ queryKey: keys.tasks('squad'), queryFn: () => answer.promise })
    await new Promise((resolve) => setTimeout(resolve))
    const moved: SquadEvent[] = [eventOf(9, 'task_updated', aTask({ id: 'a', version: 2, status: 'done' }))]
    replay.keep(moved)
    applyEvents(cache, moved)
    answer.open([aTask({ id: 'a', version: 1, status: 'todo' })])
    await load
    await new Promise((resolve) => setTimeout(resolve))
    expect(cache.getQueryData<Task[]>(keys.tasks('squad'))?.[0]?.status).toBe('done')
  })
})
