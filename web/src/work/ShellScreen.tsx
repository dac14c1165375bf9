import { useEffect, useRef, useState } from 'react'
import { apiPath } from '@/api/client'
import { Button } from '@/ui/Button'
import { openScreen } from './screen'

type State = 'opening' | 'open' | 'ended'

/** A real shell in the sandbox; another one when it has ended. */
export default function ShellScreen({ sandbox }: { sandbox: string }) {
  const [round, setRound] = useState(0)
  return <Shell key={round} sandbox={sandbox} onAgain={() => setRound(round + 1)} />
}

// Bytes go both ways; the size of the screen goes as text.
function Shell({ sandbox, onAgain }: { sandbox: string; onAgain: () => void }) {
  const node = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<State>('opening')
  useEffect(() => {
    if (!node.current) return undefined
    const screen = openScreen(node.current, { input: true })
    const { terminal } = screen
    const socket = new WebSocket(apiPath(`/sandboxes/${sandbox}/terminal`, { cols: terminal.cols, rows: terminal.rows }))
    socket.binaryType = 'arraybuffer'
    const encoder = new TextEncoder()
    socket.addEventListener('open', () => {
      setState('open')
      socket.send(JSON.stringify({ cols: terminal.cols, rows: terminal.rows }))
      terminal.focus()
    })
    socket.addEventListener('message', (message: MessageEvent<ArrayBuffer | string>) => {
      terminal.write(typeof message.data === 'string' ? message.data : new Uint8Array(message.data))
    })
    socket.addEventListener('close', () => setState('ended'))
    const typed = terminal.onData((text) => socket.readyState === WebSocket.OPEN && socket.send(encoder.encode(text)))
    const sized = terminal.onResize(({ cols, rows }) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify({ cols, rows })))
    return () => {
      typed.dispose()
      sized.dispose()
      socket.close()
      screen.close()
    }
  }, [sandbox])
  return (
    <div className="relative h-full">
      <div ref={node} data-testid="shell" className="h-full overflow-hidden py-2 pl-3" />
      {state === 'opening' && <p role="status" className="absolute top-3 right-4 text-xs text-muted">opening…</p>}
      {state === 'ended' && (
        <div role="status" className="absolute inset-x-0 bottom-0 flex items-center justify-center gap-3 border-t bg-raised p-3 text-sm">
          The shell has ended, or the sandbox is not running.
          <Button size="sm" onClick={onAgain}>Open another</Button>
        </div>
      )}
    </div>
  )
}
