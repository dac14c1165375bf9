import { RefreshCw } from 'lucide-react'
import { useLive } from './live'

/** Silent while all is well; says so while the stream is down. */
export function LiveBadge() {
  const state = useLive()
  if (state !== 'reconnecting') return <span className="sr-only" role="status">{state === 'live' ? 'live' : 'connecting'}</span>
  return (
    <span role="status" className="flex items-center gap-1.5 rounded-full bg-warn-soft px-2.5 py-1 text-xs font-medium text-warn">
      <RefreshCw aria-hidden className="size-3 animate-spin" />
      reconnecting…
    </span>
  )
}
