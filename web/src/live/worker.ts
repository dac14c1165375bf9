// The shared worker: its only work is the hub.
import { type FromTab, Hub } from './hub'
import { openLine } from './line'

const hub = new Hub(openLine)

addEventListener('connect', (event) => {
  const port = event instanceof MessageEvent ? event.ports[0] : undefined
  if (!port) return
  port.addEventListener('message', (message: MessageEvent<FromTab>) => hub.take(port, message.data))
  port.start()
})
