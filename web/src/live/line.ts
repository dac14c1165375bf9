// A line to the server: one stream, begun behind the newest event, until it is
// closed or the session ends. It runs in a tab, or once for all tabs in a worker.
import { api, apiPath, Problem } from '@/api/client'
import { newestSeq } from '@/api/events'
import type { SquadEvent } from '@/api/types'
import { type LiveState, Stream } from './stream'

export interface Listener {
  /** All events from here on will be told; what was read before may be old. */
  joined: () => void
  events: (events: SquadEvent[]) => void
  state: (state: LiveState) => void
  signedOut: () => void
}

const AGAIN_MS = 2000

export function openLine(on: Listener): () => void {
  let stream: Stream | undefined
  let closed = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const stillSignedIn = async () => {
    try {
      await api('/me')
    } catch (error) {
      if (!(error instanceof Problem && error.isSignedOut)) return true
      if (!closed) on.signedOut()
      return false
    }
    return true
  }
  const begin = async () => {
    try {
      const after = await newestSeq()
      if (closed) return
      stream = new Stream(after, { url: (last) => apiPath('/sse', { after: last }), onEvents: on.events, onState: on.state, mayRetry: stillSignedIn })
      on.joined()
    } catch {
      if (closed || !(await stillSignedIn()) || closed) return
      on.state('reconnecting')
      timer = setTimeout(() => void begin(), AGAIN_MS)
    }
  }
  void begin()
  return () => {
    closed = true
    clearTimeout(timer)
    stream?.stop()
  }
}
