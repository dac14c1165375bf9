import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { api, Problem } from '@/api/client'
import { keys } from '@/api/keys'
import type { PullRequest, Task } from '@/api/types'
import { Spinner } from '@/ui/Spinner'
import { Empty, ErrorState } from '@/ui/States'
import { NotHere } from './NotHere'
import { Once } from './Once'

const taskOf = async (noun: 'tasks' | 'pulls', ref: string, signal: AbortSignal): Promise<Task | null> => {
  if (noun === 'tasks') return api<Task>(`/tasks/${encodeURIComponent(ref)}`, { signal })
  const pull = await api<PullRequest>(`/pulls/${encodeURIComponent(ref)}`, { signal })
  return pull.task_id ? api<Task>(`/tasks/${pull.task_id}`, { signal }) : null
}

/** Short addresses, as pull requests and messages name them: /tasks/7, /pulls/<id>. */
export function Shortcut({ noun }: { noun: 'tasks' | 'pulls' }) {
  const { ref = '' } = useParams({ strict: false })
  const navigate = useNavigate()
  const task = useQuery({ queryKey: keys.shortcut(noun, ref), queryFn: ({ signal }) => taskOf(noun, ref, signal) })
  if (task.isPending) return <div className="flex h-full items-center justify-center"><Spinner label="Looking it up…" /></div>
  if (task.error instanceof Problem && task.error.status === 404) return <NotHere title={noun === 'tasks' ? `There is no task #${ref}` : 'There is no such pull request'}>It may have been deleted, or it is not yours to see.</NotHere>
  if (task.isError) return <ErrorState error={task.error} what="It" retry={() => void task.refetch()} />
  if (!task.data) return <Empty title="This pull request belongs to no task">It can be read on its forge.</Empty>
  const { squad_id: squadId, number } = task.data
  return <Once go={() => void navigate({ to: '/squads/$squadId/tasks/$number', params: { squadId, number: String(number) }, search: noun === 'pulls' ? { tab: 'changes' } : {}, replace: true })} />
}
