import { useNavigate } from '@tanstack/react-router'
import { Ellipsis, ExternalLink, GitFork, Play, RotateCcw, Square, SquareActivity, Trash2 } from 'lucide-react'
import type { PullRequest, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Menu } from '@/ui/Menu'
import { useTaskVerbs } from './useTaskVerbs'

export function TaskActions({ task, pull }: { task: Task; pull: PullRequest | undefined }) {
  const verbs = useTaskVerbs(task)
  const may = useMay(task.squad_id, 'member')
  const confirm = useConfirm()
  const navigate = useNavigate()
  const stopped = task.flag === 'failed' || task.flag === 'cancelled'
  const runs = task.status === 'in_progress' && !stopped
  const cancel = async () => {
    const yes = await confirm({ title: `Cancel #${task.number}?`, lost: 'The agent stops now. What it committed stays on its branch; what it did since the last checkpoint is lost.', verb: 'Cancel it' })
    if (yes) verbs.cancel.mutate('cancelled from the page')
  }
  const remove = async () => {
    const yes = await confirm({ title: `Delete #${task.number}?`, lost: 'Its description, executions and logs are gone for good. A branch that was pushed stays in the repository.', verb: 'Delete' })
    if (yes) verbs.remove.mutate(undefined, { onSuccess: () => void navigate({ to: '/squads/$squadId/board', params: { squadId: task.squad_id } }) })
  }
  const watch = () => void navigate({ to: '/squads/$squadId/agents/$memberId', params: { squadId: task.squad_id, memberId: task.assignee_id ?? '' }, search: task.execution_id ? { execution: task.execution_id } : {} })
  return (
    <>
      {task.execution_id && task.assignee_id && <Button onClick={watch} aria-label="Watch the work"><SquareActivity aria-hidden className="size-4" /><span className="max-sm:hidden">Watch the work</span></Button>}
      {may && runs && <Button onClick={() => void cancel()} busy={verbs.cancel.isPending}><Square aria-hidden className="size-3.5" />Cancel</Button>}
      {may && stopped && <Button look="primary" onClick={() => verbs.retry.mutate('')} busy={verbs.retry.isPending}><RotateCcw aria-hidden className="size-4" />Try again</Button>}
      {may && (task.status === 'backlog' || task.status === 'todo') && !stopped && <Button look="primary" onClick={() => verbs.run.mutate()} busy={verbs.run.isPending}><Play aria-hidden className="size-4" />Start</Button>}
      {may && (
        <Menu
          trigger={<Button look="quiet" size="icon" aria-label="More"><Ellipsis aria-hidden className="size-4" /></Button>}
          items={[
            { label: 'Try it 3 ways', icon: <GitFork aria-hidden />, onSelect: () => verbs.fork.mutate(3), disabled: task.status === 'done' },
            pull && /^https?:/.test(pull.url) && !pull.url.startsWith(location.origin) ? { label: 'Open on the forge', icon: <ExternalLink aria-hidden />, onSelect: () => void open(pull.url, '_blank', 'noopener') } : false,
            'line',
            { label: 'Delete…', icon: <Trash2 aria-hidden />, danger: true, onSelect: () => void remove() },
          ]}
        />
      )}
    </>
  )
}
