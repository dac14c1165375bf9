import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Check, FileDiff as FileIcon, GitFork } from 'lucide-react'
import { lazy, Suspense, useMemo, useState } from 'react'
import { eventsQuery } from '@/api/events'
import { sandboxDiffQuery } from '@/api/sandboxes'
import { membersQuery } from '@/api/squads'
import type { Diff, Execution, Member, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { StepBar } from '@/board/StepBar'
import { livenessWords, pulseOf } from '@/board/steps'
import { compact, count, usd } from '@/format/number'
import { span } from '@/format/time'
import { Avatar } from '@/ui/Avatar'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Dialog } from '@/ui/Dialog'
import { Prose } from '@/ui/Prose'
import { Rows } from '@/ui/States'
import { useNow } from '@/ui/useNow'
import { workOf } from '@/work/items'
import { EXECUTION_TONES } from './tones'
import { useTaskVerbs } from './useTaskVerbs'

const FileChange = lazy(() => import('./FileChange').then((module) => ({ default: module.FileChange })))

/** Several tries at once, side by side: what each says, changed and cost. One is kept. */
export function Ways({ task, ways }: { task: Task; ways: Execution[] }) {
  const members = useQuery(membersQuery(task.squad_id))
  const ready = ways.filter((each) => each.status === 'waiting').length
  return (
    <section aria-label="Tried several ways">
      <h3 className="mb-1 flex items-center gap-2 text-base font-semibold"><GitFork aria-hidden className="size-4 text-accent" />Tried {ways.length} ways</h3>
      <p className="mb-3 text-sm text-muted">{ready === 0 ? 'Each agent works in a sandbox of its own. Choose when they have finished.' : `${count(ready, 'result')} to compare. Keep one; the others are given up.`}</p>
      <ol className="grid gap-3 md:grid-cols-[repeat(auto-fit,minmax(15rem,1fr))]">
        {ways.map((way, i) => <Way key={way.id} task={task} way={way} n={i + 1} member={members.data?.find((each) => each.id === way.member_id)} />)}
      </ol>
    </section>
  )
}

function Way({ task, way, n, member }: { task: Task; way: Execution; n: number; member: Member | undefined }) {
  const events = useQuery(eventsQuery(way.id))
  const said = useMemo(() => workOf(events.data ?? []).items.findLast((item) => item.kind === 'message'), [events.data])
  const finished = way.status === 'waiting'
  const may = useMay(task.squad_id, 'member')
  const diff = useQuery({ ...sandboxDiffQuery(way.sandbox_id ?? ''), enabled: may && finished && Boolean(way.sandbox_id) })
  const [open, setOpen] = useState(false)
  const now = useNow()
  const { keep } = useTaskVerbs(task)
  const confirm = useConfirm()
  const choose = async () => {
    const yes = await confirm({ title: `Keep way ${n}?`, lost: 'The other tries are stopped, and what they changed is given up with their sandboxes.', verb: 'Keep it' })
    if (yes) keep.mutate(way.id)
  }
  return (
    <li aria-label={`Way ${n}`} className="flex flex-col rounded-lg border bg-surface shadow-card">
      <div className="flex items-center gap-2.5 border-b p-3">
        {member && <Avatar id={member.id} name={member.name} size={26} pulse={pulseOf(way)} />}
        <p className="min-w-0 flex-1 truncate text-sm"><b className="font-semibold">Way {n}</b> <span className="text-muted">by {member?.name}</span></p>
        <Badge tone={EXECUTION_TONES[way.status]}>{finished ? 'finished' : way.status}</Badge>
      </div>
      <div className="flex flex-1 flex-col gap-3 p-3 text-sm">
        {way.status === 'running' && <div><StepBar execution={way} /><p className="mt-1.5 truncate text-xs text-muted">{livenessWords(way)}</p></div>}
        {said?.kind === 'message' && <div className="line-clamp-6"><Prose text={said.text} /></div>}
        {way.error && <p className="text-xs break-words text-danger">{way.error}</p>}
        {may && finished && <Stat diff={diff.data} pending={diff.isPending} onOpen={() => setOpen(true)} />}
        <p className="tabular mt-auto text-xs text-faint">{[way.started_at && span(Date.parse(way.finished_at ?? new Date(now).toISOString()) - Date.parse(way.started_at)), usd(way.model_cost_usd + way.sandbox_cost_usd), `${compact(way.tokens_in + way.tokens_out)} tokens`].filter(Boolean).join(' · ')}</p>
      </div>
      <div className="flex items-center gap-2 border-t p-2">
        {way.member_id && <Link to="/squads/$squadId/agents/$memberId" params={{ squadId: task.squad_id, memberId: way.member_id }} search={{ execution: way.id }} className="px-2 text-sm text-accent hover:underline">Watch</Link>}
        {may && <Button size="sm" look={finished ? 'primary' : 'plain'} className="ml-auto" disabled={!finished} title={finished ? undefined : 'It can be kept when its agent has finished'} busy={keep.isPending} onClick={() => void choose()}><Check aria-hidden className="size-3.5" />Keep this one</Button>}
      </div>
      <Dialog open={open} onOpenChange={setOpen} title={`What way ${n} changed`} wide>
        <Suspense fallback={<Rows what="the changes" />}><div className="space-y-4">{(diff.data?.files ?? []).map((file) => <FileChange key={file.path} file={file} mode="inline" comments={[]} squad={task.squad_id} />)}</div></Suspense>
      </Dialog>
    </li>
  )
}

function Stat({ diff, pending, onOpen }: { diff: Diff | undefined; pending: boolean; onOpen: () => void }) {
  if (pending) return <p role="status" className="text-xs text-faint">reading the changes…</p>
  const files = diff?.files ?? []
  if (files.length === 0) return <p className="text-xs text-muted">It changed nothing.</p>
  const sum = (key: 'additions' | 'deletions') => files.reduce((total, file) => total + file[key], 0)
  return (
    <div className="rounded-md bg-sunken p-2 text-xs">
      <button type="button" onClick={onOpen} className="flex items-center gap-1.5 font-medium text-accent hover:underline"><FileIcon aria-hidden className="size-3.5" />{count(files.length, 'file')} <span className="tabular text-ok">+{sum('additions')}</span> <span className="tabular text-danger">−{sum('deletions')}</span></button>
      <ul className="mt-1 font-mono text-2xs text-muted">{files.slice(0, 4).map((file) => <li key={file.path} className="truncate">{file.path}</li>)}{files.length > 4 && <li>and {files.length - 4} more</li>}</ul>
    </div>
  )
}
