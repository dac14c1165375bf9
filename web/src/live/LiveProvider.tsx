import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { apiPath, Problem } from '@/api/client'
import { newestSeq } from '@/api/events'
import { keys } from '@/api/keys'
import { meQuery } from '@/api/me'
import { LiveContext } from './live'
import { applyEvents } from './reduce'
import { Replay } from './replay'
import { type LiveState, Stream } from './stream'

/** Keeps the tab's one stream open while someone is signed in. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const cache = useQueryClient()
  const [state, setState] = useState<LiveState>('connecting')
  useEffect(() => {
    let stream: Stream | undefined
    let ended = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const replay = new Replay()
    const unwatch = replay.watch(cache.getQueryCache(), (missed) => applyEvents(cache, missed))
    const stillSignedIn = async () => {
      try {
        await cache.fetchQuery({ ...meQuery, staleTime: 0 })
        return true
      } catch (error) {
        if (!(error instanceof Problem && error.isSignedOut)) return true
        cache.setQueryData(keys.me, null)
        return false
      }
    }
    const begin = async () => {
      try {
        const after = await newestSeq()
        if (ended) return
        stream = new Stream(after, {
          url: (last) => apiPath('/sse', { after: last }),
          onEvents: (events) => {
            replay.keep(events)
            applyEvents(cache, events)
          },
          onState: setState,
          mayRetry: stillSignedIn,
        })
        // What was read before the stream began may already be old.
        await cache.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'me' })
      } catch {
        if (ended) return
        setState('reconnecting')
        timer = setTimeout(() => void begin(), 2000)
      }
    }
    void begin()
    return () => {
      ended = true
      clearTimeout(timer)
      stream?.stop()
      unwatch()
    }
  }, [cache])
  return <LiveContext value={state}>{children}</LiveContext>
}
