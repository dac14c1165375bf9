import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Ellipsis, ExternalLink, GitFork, Pause, Play, SquareTerminal, Trash2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { samplesQuery } from '@/api/sandboxes'
import type { Member, Sandbox, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { SANDBOX_WORDS } from '@/board/steps'
import { bytes, count, usd } from '@/format/number'
import { span } from '@/format/time'
import { Avatar } from '@/ui/Avatar'
import { Badge, type Tone } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Menu } from '@/ui/Menu'
import { Sparkline } from '@/ui/Sparkline'
import { Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { PortDialog } from './PortDialog'
import { useSandboxVerbs } from './useSandboxVerbs'

const ShellScreen = lazy(() => import('@/work/ShellScreen'))
const TONES: Record<Sandbox['status'], Tone> = { created: 'info', running: 'ok', paused: 'warn', terminated: 'neutral', error: 'danger' }

export function SandboxRow({ sandbox, member, task, foreign }: { sandbox: Sandbox; member: Member | undefined; task: Task | undefined; foreign: string | undefined }) {
  const verbs = useSandboxVerbs(sandbox)
  const [open, setOpen] = useState<'shell' | 'port'>()
  const may = useMay(sandbox.squad_id ?? '', 'member')
  const alive = sandbox.status === 'running' || sandbox.status === 'paused'
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-2 p-3 sm:px-4">
      <Badge tone={TONES[sandbox.status]} className="w-20 justify-center">{SANDBOX_WORDS[sandbox.status]}</Badge>
      <div className="min-w-0 flex-1 basis-60 max-sm:order-1 max-sm:basis-full">
        <p className="flex items-center gap-2 truncate text-sm font-medium">
          {member && <Avatar id={member.id} name={member.name} hidden />}
          {sandbox.pooled ? 'Waits in the warm pool' : (member?.name ?? foreign ?? 'Nobody’s')}
          {task && <Link to="/squads/$squadId/tasks/$number" params={{ squadId: task.squad_id, number: String(task.number) }} className="truncate font-normal text-muted hover:underline">#{task.number} {task.title}</Link>}
        </p>
        <p className="truncate text-xs text-faint">
          <span className="font-mono">{sandbox.e2b_id || sandbox.id.slice(-8)}</span> · {sandbox.provider}/{sandbox.template} · {sandbox.cpu} CPU, {bytes(sandbox.memory_mb * 1024 * 1024)} · {sandbox.create_ms > 0 && `made in ${span(sandbox.create_ms)} · `}{count(sandbox.command_count, 'command')}
        </p>
        {sandbox.error && <p className="text-xs break-words text-danger">{sandbox.error}</p>}
      </div>
      {may && sandbox.status === 'running' && <Load id={sandbox.id} memory={sandbox.memory_mb} />}
      <dl className="grid w-28 grid-cols-2 gap-3 text-right text-xs max-sm:order-2 max-sm:ml-auto">
        <div><dt className="text-faint">age</dt><dd><Time at={sandbox.created_at} short /></dd></div>
        <div><dt className="text-faint">cost</dt><dd className="tabular">{usd(sandbox.cost_usd)}</dd></div>
      </dl>
      {may && alive && (
        <Menu
          trigger={<Button look="quiet" size="icon" className="max-sm:ml-auto" aria-label="What to do with this sandbox"><Ellipsis aria-hidden className="size-4" /></Button>}
          items={[
            { label: 'Open a shell', icon: <SquareTerminal aria-hidden />, onSelect: () => setOpen('shell') },
            { label: 'Open a port', icon: <ExternalLink aria-hidden />, onSelect: () => setOpen('port') },
            sandbox.status === 'running' ? { label: 'Pause', icon: <Pause aria-hidden />, onSelect: () => verbs.pause.mutate() } : { label: 'Resume', icon: <Play aria-hidden />, onSelect: () => verbs.resume.mutate() },
            { label: 'Fork', icon: <GitFork aria-hidden />, onSelect: () => verbs.fork.mutate() },
            'line',
            { label: 'Destroy…', icon: <Trash2 aria-hidden />, danger: true, onSelect: () => void verbs.destroy() },
          ]}
        />
      )}
      <Dialog open={open === 'shell'} onOpenChange={() => setOpen(undefined)} title="Shell" about={`Inside ${sandbox.e2b_id || sandbox.id}`} wide ownEscape>
        <div className="h-[50vh] overflow-hidden rounded-md border"><Suspense fallback={<Rows what="the shell" />}><ShellScreen sandbox={sandbox.id} /></Suspense></div>
      </Dialog>
      {open === 'port' && <PortDialog sandbox={sandbox} onClose={() => setOpen(undefined)} />}
    </li>
  )
}

function Load({ id, memory }: { id: string; memory: number }) {
  const samples = useQuery(samplesQuery(id))
  const last = samples.data?.at(-1)
  if (!last || !samples.data) return <span className="w-44 text-xs text-faint">{samples.isError ? 'no measurements' : ''}</span>
  return (
    <div className="flex gap-4 text-xs text-muted max-sm:order-2">
      <span className="flex flex-col gap-0.5"><Sparkline values={samples.data.map((each) => each.cpu_pct)} max={100} width={72} label={`CPU, now ${Math.round(last.cpu_pct)} percent`} /><span className="tabular">{Math.round(last.cpu_pct)}% CPU</span></span>
      <span className="flex flex-col gap-0.5"><Sparkline values={samples.data.map((each) => each.memory_mb)} max={memory} width={72} label={`Memory, now ${last.memory_mb} megabytes`} /><span className="tabular">{last.memory_mb} MB</span></span>
    </div>
  )
}
