import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { keys } from '@/api/keys'
import { openFeed } from './feed'
import { LiveContext } from './live'
import { applyEvents } from './reduce'
import { Replay } from './replay'
import type { LiveState } from './stream'

/** Keeps the tab's events flowing while someone is signed in. */
export function LiveProvider({ user, children }: { user: string; children: ReactNode }) {
  const cache = useQueryClient()
  const [state, setState] = useState<LiveState>('connecting')
  useEffect(() => {
    const replay = new Replay()
    const unwatch = replay.watch(cache.getQueryCache(), (missed) => applyEvents(cache, missed))
    const close = openFeed(user, {
      // What was read before the events began may already be old.
      joined: () => void cache.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' }),
      events: (events) => {
        replay.keep(events)
        applyEvents(cache, events)
      },
      state: setState,
      signedOut: () => cache.setQueryData(keys.me, null),
    })
    return () => {
      close()
      unwatch()
    }
  }, [cache, user])
  return <LiveContext value={state}>{children}</LiveContext>
}
