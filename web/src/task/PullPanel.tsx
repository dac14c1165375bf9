import { Link } from '@tanstack/react-router'
import { Check, CircleCheck, CircleDashed, CircleX, ExternalLink, GitMerge, GitPullRequest, GitPullRequestClosed, GitPullRequestDraft, RefreshCw } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import type { PullRequest, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { Button } from '@/ui/Button'
import { cx } from '@/ui/cx'
import { useConfirm } from '@/ui/confirm'
import { Prose } from '@/ui/Prose'
import { usePullVerbs } from './usePullVerbs'

const STATES = {
  open: { icon: GitPullRequest, tone: 'bg-ok-soft text-ok', name: 'Open' },
  draft: { icon: GitPullRequestDraft, tone: 'bg-sunken text-muted', name: 'Draft' },
  merged: { icon: GitMerge, tone: 'bg-review-soft text-review', name: 'Merged' },
  closed: { icon: GitPullRequestClosed, tone: 'bg-danger-soft text-danger', name: 'Closed' },
}

export function PullPanel({ pull, task }: { pull: PullRequest; task: Task }) {
  const state = STATES[pull.state === 'open' && pull.draft ? 'draft' : pull.state]
  const Icon = state.icon
  return (
    <section aria-label="Pull request" className="rounded-lg border bg-surface shadow-card">
      <header className="flex flex-wrap items-center gap-3 p-4">
        <span className={cx('inline-flex items-center gap-1.5 rounded-full px-2.5 py-1 text-xs font-medium', state.tone)}><Icon aria-hidden className="size-3.5" />{state.name}</span>
        <h3 className="min-w-0 flex-1 font-medium"><span className="text-muted">Pull request {pull.number}:</span> {pull.title}</h3>
      </header>
      {pull.body && <Body text={pull.body} />}
      <Facts pull={pull} />
      <footer className="flex flex-wrap items-center gap-2 border-t p-3">
        <PullActions pull={pull} task={task} />
        <Link from="/squads/$squadId/tasks/$number" to="." search={{ tab: 'changes' }} className="ml-auto text-sm text-accent hover:underline">Read the changes</Link>
      </footer>
    </section>
  )
}

/** What the agent wrote about it: the first words at once, the evidence on request. */
function Body({ text }: { text: string }) {
  const [open, setOpen] = useState(false)
  const at = text.search(/\n#+ /)
  const short = at > 0 ? text.slice(0, at).trim() : text
  const more = short.length < text.trim().length
  return (
    <div className="border-t px-4 py-3 text-sm">
      <Prose text={open ? text : short} />
      {more && <button type="button" aria-expanded={open} className="mt-2 text-accent hover:underline" onClick={() => setOpen(!open)}>{open ? 'Show less' : 'Show the evidence'}</button>}
    </div>
  )
}

function Facts({ pull }: { pull: PullRequest }) {
  if (pull.state !== 'open') return null
  const lines: [ReactNode, string][] = []
  if (pull.draft) lines.push([<GitPullRequestDraft key="i" aria-hidden className="text-muted" />, 'A draft: it can be merged once it is marked as ready'])
  if (pull.checks === 'success') lines.push([<CircleCheck key="i" aria-hidden className="text-ok" />, 'All checks passed'])
  if (pull.checks === 'pending') lines.push([<CircleDashed key="i" aria-hidden className="animate-breathe text-warn" />, 'Checks are running'])
  if (pull.checks === 'failure') lines.push([<CircleX key="i" aria-hidden className="text-danger" />, 'A check failed; the agent gets it back as a new turn'])
  if (pull.mergeable === 'conflict') lines.push([<CircleX key="i" aria-hidden className="text-warn" />, `Conflicts with ${pull.base}`])
  if (pull.mergeable === 'clean') lines.push([<CircleCheck key="i" aria-hidden className="text-ok" />, `Merges cleanly into ${pull.base}`])
  if (pull.review === 'approved') lines.push([<CircleCheck key="i" aria-hidden className="text-ok" />, 'Approved'])
  if (pull.review === 'changes_requested') lines.push([<CircleDashed key="i" aria-hidden className="text-warn" />, 'Changes were asked for'])
  if (lines.length === 0) return null
  return <ul className="space-y-1.5 border-t px-4 py-3 text-sm [&_svg]:size-4">{lines.map(([icon, text]) => <li key={text} className="flex items-center gap-2">{icon}{text}</li>)}</ul>
}

export function PullActions({ pull, task }: { pull: PullRequest; task: Task }) {
  const verbs = usePullVerbs(task.squad_id, pull)
  const may = useMay(task.squad_id, 'member')
  const confirm = useConfirm()
  const merge = async () => {
    const yes = await confirm({ title: `Merge into ${pull.base}?`, lost: `${pull.head} becomes part of ${pull.base}. The task is done, its sandbox is destroyed, and the branch goes unless the squad keeps branches.`, verb: 'Merge' })
    if (yes) verbs.merge.mutate()
  }
  if (pull.state !== 'open' || !may) return <ForgeLink url={pull.url} />
  return (
    <>
      {pull.draft
        ? <Button look="primary" busy={verbs.ready.isPending} onClick={() => verbs.ready.mutate()}><GitPullRequest aria-hidden className="size-4" />Ready for review</Button>
        : <Button look="primary" busy={verbs.merge.isPending} disabled={pull.mergeable === 'conflict'} title={pull.mergeable === 'conflict' ? `It conflicts with ${pull.base}` : undefined} onClick={() => void merge()}><GitMerge aria-hidden className="size-4" />Merge</Button>}
      <Button busy={verbs.review.isPending} disabled={pull.review === 'approved'} onClick={() => verbs.review.mutate({ verdict: 'approve' })}><Check aria-hidden className="size-4" />{pull.review === 'approved' ? 'Approved' : 'Approve'}</Button>
      <Button look="quiet" size="icon" aria-label="Read the state from the forge again" busy={verbs.refresh.isPending} onClick={() => verbs.refresh.mutate()}><RefreshCw aria-hidden className="size-4" /></Button>
      <ForgeLink url={pull.url} />
    </>
  )
}

function ForgeLink({ url }: { url: string }) {
  if (!URL.canParse(url) || !url.startsWith('http') || new URL(url).origin === location.origin) return null
  return <a href={url} target="_blank" rel="noreferrer noopener" className="inline-flex items-center gap-1.5 px-2 text-sm text-muted hover:text-ink"><ExternalLink aria-hidden className="size-4" />Open on the forge</a>
}
