// The shared worker: its only work is the hub.
import { type FromTab, Hub, type ToTab } from './hub'
import { openLine } from './line'

const hub = new Hub(openLine)

addEventListener('connect', (event) => {
  const port = event instanceof MessageEvent ? event.ports[0] : undefined
  if (!port) return
  const tab = { tell: (message: ToTab) => port.postMessage(message) }
  port.addEventListener('message', (message: MessageEvent<FromTab>) => hub.take(tab, message.data))
  port.start()
})
