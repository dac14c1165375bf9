import { Bot, Check, ChevronDown, CircleHelp, Eye, GitBranch, Globe, Info, Lightbulb, type LucideIcon, Pencil, Search, SquareTerminal, Waypoints, Wrench } from 'lucide-react'
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

/** A mark on the line of time, and what happened beside it. */
function Beat({ icon: Icon, name, tone, at, strong, children }: { icon: LucideIcon; name: string; tone?: string | undefined; at: string; strong?: boolean; children: React.ReactNode }) {
  return (
    <div className="relative flex gap-3 before:absolute before:inset-y-0 before:left-[0.84375rem] before:w-px before:bg-line">
      <span className={cx('relative z-10 mt-1 flex size-7 shrink-0 items-center justify-center rounded-full border bg-canvas', strong ? 'border-line-strong' : 'border-line', tone ?? 'text-faint')}><Icon {...(name ? { 'aria-label': name } : { 'aria-hidden': true })} className="size-3.5" /></span>
      <div className="min-w-0 flex-1 py-1">{children}</div>
      <span className="w-9 shrink-0 pt-2 text-right text-2xs text-faint"><Time at={at} short /></span>
    </div>
  )
}

function Tool({ call, at }: { call: ToolCall; at: string }) {
  const [open, setOpen] = useState(false)
  const failed = call.status === 'failed' || (call.exit_code !== undefined && call.exit_code !== 0)
  const words = call.command || call.title
  const body = call.output || (call.paths?.length ? call.paths.join('\n') : '')
  return (
    <Beat icon={KINDS[call.kind] ?? Wrench} name={call.kind} at={at} strong tone={failed ? 'text-danger' : 'text-muted'}>
      <div className="overflow-hidden rounded-lg border bg-surface">
        <button type="button" disabled={!body} aria-expanded={body ? open : undefined} onClick={() => setOpen(!open)} className="flex min-h-8 w-full items-center gap-2.5 px-3 py-1 text-left text-sm enabled:hover:bg-hover">
          <span className={cx('min-w-0 flex-1 truncate', call.kind === 'execute' && 'font-mono text-xs')}>{words}</span>
          {call.status === 'running' || call.status === 'pending' ? <Spinner /> : null}
          {call.exit_code !== undefined && <Badge tone={call.exit_code === 0 ? 'ok' : 'danger'}>exit {call.exit_code}</Badge>}
          {call.exit_code === undefined && call.status === 'failed' && <Badge tone="danger">failed</Badge>}
          {call.duration_ms !== undefined && <span className="tabular text-xs text-faint">{span(call.duration_ms)}</span>}
          {body && <ChevronDown aria-hidden className={cx('size-3.5 shrink-0 text-faint transition-transform', open && 'rotate-180')} />}
        </button>
        {open && body && <pre tabIndex={0} aria-label={`Output of ${words}`} className="max-h-80 overflow-auto border-t bg-sunken p-3 font-mono text-xs leading-relaxed break-words whitespace-pre-wrap">{body}</pre>}
      </div>
    </Beat>
  )
}

function Said({ icon, text, at, asks }: { icon: LucideIcon; text: string; at: string; asks?: boolean }) {
  return (
    <Beat icon={icon} name={asks ? 'question' : 'message'} at={at} strong tone={asks ? 'text-warn' : 'text-accent'}>
      <div className={cx('my-1 rounded-lg border px-3.5 py-2.5 text-sm', asks ? 'border-warn/40 bg-warn-soft' : 'bg-surface shadow-card')}><Prose text={text} /></div>
    </Beat>
  )
}

function Line({ icon, at, children }: { icon: LucideIcon; at: string; children: React.ReactNode }) {
  return <Beat icon={icon} name="" at={at}><span className="flex min-h-7 min-w-0 items-center gap-2 text-sm text-muted">{children}</span></Beat>
}

const STEP_NAMES: Record<string, string> = { sandbox: 'Sandbox', clone: 'Clone', branch: 'Branch', agent: 'Agent', commit: 'Commit', push: 'Push', pull_request: 'Pull request', review: 'Review', cleanup: 'Clean up' }

function StepWords({ step }: { step: StepProgress }) {
  const tone = step.status === 'failed' ? 'danger' : 'warn'
  return (
    <>
      <span className="font-medium text-ink">{STEP_NAMES[step.step] ?? step.step}</span>
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
