import { ChevronDown, ChevronUp, Search } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { SquadEvent } from '@/api/types'
import { Button } from '@/ui/Button'
import { openScreen, type Screen } from './screen'

/** All output of the run, kept after it, searchable. */
export default function LogScreen({ events }: { events: SquadEvent[] }) {
  const node = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(null)
  const written = useRef(0)
  const [text, setText] = useState('')
  const [found, setFound] = useState<{ resultIndex: number; resultCount: number }>()
  useEffect(() => {
    if (!node.current) return undefined
    const opened = openScreen(node.current, { input: false })
    screen.current = opened
    written.current = 0
    const results = opened.search.onDidChangeResults(setFound)
    return () => {
      results.dispose()
      opened.close()
      screen.current = null
    }
  }, [])
  useEffect(() => {
    const terminal = screen.current?.terminal
    if (!terminal) return
    for (const event of events) {
      if (event.type !== 'log' || event.seq <= written.current) continue
      written.current = event.seq
      terminal.write(event.payload.stream === 'stderr' ? `\u001b[33m${event.payload.text}\u001b[39m` : event.payload.text)
    }
  }, [events])
  const find = (back: boolean) => {
    const decorations = { matchOverviewRuler: '#b8860b', activeMatchColorOverviewRuler: '#1f6f5c', matchBackground: '#b8860b55', activeMatchBackground: '#1f6f5c' }
    if (!text) return
    if (back) screen.current?.search.findPrevious(text, { decorations })
    else screen.current?.search.findNext(text, { decorations })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    find(!event.shiftKey)
  }
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 items-center gap-1 border-b px-3 py-1.5">
        <Search aria-hidden className="size-4 text-faint" />
        <input aria-label="Search the log" placeholder="Search the log…" value={text} onChange={(event) => { setText(event.target.value); setFound(undefined) }} onKeyDown={onKeyDown} className="h-7 min-w-0 flex-1 bg-transparent px-1.5 text-sm outline-none" />
        {text && found && <span role="status" className="tabular text-xs text-muted">{found.resultCount === 0 ? 'not found' : `${found.resultIndex + 1} of ${found.resultCount}`}</span>}
        <Button look="quiet" size="icon" aria-label="Find earlier" onClick={() => find(true)}><ChevronUp aria-hidden className="size-4" /></Button>
        <Button look="quiet" size="icon" aria-label="Find later" onClick={() => find(false)}><ChevronDown aria-hidden className="size-4" /></Button>
      </div>
      <div ref={node} data-testid="log" className="min-h-0 flex-1 overflow-hidden py-2 pl-3" />
    </div>
  )
}
