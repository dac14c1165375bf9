import { SquareTerminal } from 'lucide-react'
import { useState } from 'react'
import type { Execution, SquadEvent } from '@/api/types'
import { useMay } from '@/app/may'
import { Segmented } from '@/ui/Segmented'
import { Empty } from '@/ui/States'
import LogScreen from './LogScreen'
import ShellScreen from './ShellScreen'

export default function TerminalTab({ events, execution }: { events: SquadEvent[] | undefined; execution: Execution | undefined }) {
  const [mode, setMode] = useState<'log' | 'shell'>('log')
  const may = useMay(execution?.squad_id ?? '', 'member')
  if (!execution) return <Empty icon={<SquareTerminal aria-hidden />} title="No output yet">The log of the sandbox appears here while the agent works, and stays.</Empty>
  const shell = mode === 'shell' && execution.sandbox_id
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 items-center gap-3 px-3 pt-2">
        {may && <Segmented label="Log or shell" value={mode} onChange={setMode} options={[{ value: 'log', label: 'Log' }, { value: 'shell', label: 'Shell' }]} />}
        <p className="text-xs text-faint max-sm:hidden">{mode === 'log' ? 'Everything the run printed; kept when it is over.' : 'You are inside the agent’s sandbox. Be kind: it works here.'}</p>
      </div>
      <div className="min-h-0 flex-1">
        {mode === 'log' && <LogScreen key={execution.id} events={events ?? []} />}
        {shell && <ShellScreen key={execution.sandbox_id} sandbox={execution.sandbox_id ?? ''} />}
        {mode === 'shell' && !execution.sandbox_id && <Empty icon={<SquareTerminal aria-hidden />} title="There is no sandbox">A shell needs a running one.</Empty>}
      </div>
    </div>
  )
}
