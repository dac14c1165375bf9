import { Bot, Check, CircleHelp, Eye, GitBranch, Globe, Info, Lightbulb, type LucideIcon, Pencil, Search, SquareTerminal, Waypoints, Wrench } from 'lucide-react'
import { memo, useState } from 'react'
import type { GitProgress, StepProgress, ToolCall } from '@/api/types'
import { span } from '@/format/time'
import { Badge } from '@/ui/Badge'
import { cx } from '@/ui/cx'
import { Prose } from '@/ui/Prose'
import { Spinner } from '@/ui/Spinner'
import { Time } from '@/ui/Time'
import type { Item } from './items'

/** One line of the activity. */
export const Entry = memo(function Entry({ item }: { item: Item }) {
  switch (item.kind) {
    case 'tool': return <Tool call={item.call} at={item.at} />
    case 'message': return <Said icon={Bot} text={item.text} at={item.at} />
    case 'question': return <Said icon={CircleHelp} text={item.text} at={item.at} asks />
    case 'step': return <Line icon={Waypoints} at={item.at}><StepWords step={item.step} /></Line>
    case 'git': return <Line icon={GitBranch} at={item.at}><GitWords git={item.git} /></Line>
    case 'notice': return <Line icon={Info} at={item.at}><span className="break-words text-warn">{item.text}</span></Line>
  }
})

const KINDS: Record<ToolCall['kind'], LucideIcon> = { read: Eye, edit: Pencil, execute: SquareTerminal, search: Search, fetch: Globe, think: Lightbulb, other: Wrench }

function Tool({ call, at }: { call: ToolCall; at: string }) {
  const [open, setOpen] = useState(false)
  const Icon = KINDS[call.kind] ?? Wrench
  const failed = call.status === 'failed' || (call.exit_code !== undefined && call.exit_code !== 0)
  const words = call.command || call.title
  const body = call.output || (call.paths?.length ? call.paths.join('\n') : '')
  return (
    <div className="py-1">
      <button
        type="button" disabled={!body} aria-expanded={body ? open : undefined} onClick={() => setOpen(!open)}
        className="flex w-full items-center gap-2.5 rounded-md px-2 py-1.5 text-left text-sm enabled:hover:bg-hover"
      >
        <Icon aria-label={call.kind} className={cx('size-4 shrink-0', failed ? 'text-danger' : 'text-faint')} />
        <span className={cx('min-w-0 flex-1 truncate', call.kind === 'execute' && 'font-mono text-xs')}>{words}</span>
        {call.status === 'running' || call.status === 'pending' ? <Spinner /> : null}
        {call.exit_code !== undefined && <Badge tone={call.exit_code === 0 ? 'ok' : 'danger'}>exit {call.exit_code}</Badge>}
        {call.exit_code === undefined && call.status === 'failed' && <Badge tone="danger">failed</Badge>}
        {call.duration_ms !== undefined && <span className="tabular w-14 text-right text-xs text-faint">{span(call.duration_ms)}</span>}
        <span className="w-8 text-right text-xs text-faint"><Time at={at} short /></span>
      </button>
      {open && body && <pre className="mt-1 mb-2 ml-8 max-h-80 overflow-auto rounded-md border bg-sunken p-3 font-mono text-xs leading-relaxed break-words whitespace-pre-wrap">{body}</pre>}
    </div>
  )
}

function Said({ icon: Icon, text, at, asks }: { icon: LucideIcon; text: string; at: string; asks?: boolean }) {
  return (
    <div className={cx('my-2 flex gap-2.5 rounded-lg border p-3 text-sm', asks ? 'border-warn/40 bg-warn-soft' : 'bg-surface shadow-card')}>
      <Icon aria-label={asks ? 'question' : 'message'} className={cx('mt-0.5 size-4 shrink-0', asks ? 'text-warn' : 'text-accent')} />
      <div className="min-w-0 flex-1"><Prose text={text} /></div>
      <span className="text-xs text-faint"><Time at={at} short /></span>
    </div>
  )
}

function Line({ icon: Icon, at, children }: { icon: LucideIcon; at: string; children: React.ReactNode }) {
  return (
    <div className="flex items-center gap-2.5 px-2 py-1.5 text-sm text-muted">
      <Icon aria-hidden className="size-4 shrink-0 text-faint" />
      <span className="flex min-w-0 flex-1 items-center gap-2">{children}</span>
      <span className="w-8 text-right text-xs text-faint"><Time at={at} short /></span>
    </div>
  )
}

function StepWords({ step }: { step: StepProgress }) {
  const tone = step.status === 'failed' ? 'danger' : 'warn'
  return (
    <>
      <span className="font-medium text-ink">{step.step.replace('_', ' ')}</span>
      {step.status === 'succeeded' ? <Check aria-label="done" className="size-3.5 text-ok" /> : <Badge tone={tone}>{step.status}{step.status === 'running' && step.percent ? ` ${step.percent}%` : ''}</Badge>}
      <span className="min-w-0 flex-1 truncate">{step.detail}</span>
      {step.duration_ms !== undefined && <span className="tabular text-xs text-faint">{span(step.duration_ms)}</span>}
    </>
  )
}

function GitWords({ git }: { git: GitProgress }) {
  return (
    <>
      <span className="font-medium text-ink">git {git.kind}</span>
      {git.status === 'running'
        ? <span className="flex flex-1 items-center gap-2"><progress aria-label={`git ${git.kind}`} max={100} value={git.percent ?? 0} className="squad-progress w-32" /><span className="tabular text-xs">{git.phase} {git.percent ?? 0}%</span></span>
        : git.status === 'failed' ? <Badge tone="danger">failed</Badge> : <Check aria-label="done" className="size-3.5 text-ok" />}
      {git.attempts > 1 && <span className="text-xs">{git.attempts} tries</span>}
      {git.duration_ms > 0 && <span className="tabular ml-auto text-xs text-faint">{span(git.duration_ms)}</span>}
    </>
  )
}
