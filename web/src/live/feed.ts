// Where a tab gets its events from: the worker that all tabs share, or a line of
// its own in browsers that have no shared workers.
import type { FromTab, ToTab } from './hub'
import { type Listener, openLine } from './line'

export function openFeed(user: string, on: Listener): () => void {
  if (typeof SharedWorker === 'undefined') return openLine(on)
  const { port } = new SharedWorker(new URL('./worker.ts', import.meta.url), { type: 'module', name: 'squad-live' })
  const tell = (message: FromTab) => port.postMessage(message)
  port.addEventListener('message', ({ data }: MessageEvent<ToTab>) => {
    if (data.say === 'joined') on.joined()
    else if (data.say === 'events') on.events(data.events)
    else if (data.say === 'state') on.state(data.state)
    else on.signedOut()
  })
  port.start()
  // A page that is left may be kept and shown again later: it leaves and joins anew.
  const leave = () => tell({ say: 'leave' })
  const back = (event: PageTransitionEvent) => event.persisted && tell({ say: 'join', user })
  addEventListener('pagehide', leave)
  addEventListener('pageshow', back)
  tell({ say: 'join', user })
  return () => {
    removeEventListener('pagehide', leave)
    removeEventListener('pageshow', back)
    leave()
    port.close()
  }
}
