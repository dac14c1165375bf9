import { useQuery } from '@tanstack/react-query'
import { Columns2, FileDiff as FileIcon, Rows2 } from 'lucide-react'
import { useMemo, useState, useSyncExternalStore } from 'react'
import { commentsQuery, pullDiffQuery } from '@/api/pulls'
import { taskDiffQuery } from '@/api/tasks'
import type { PullRequest, ReviewComment, Task } from '@/api/types'
import { count } from '@/format/number'
import { Segmented } from '@/ui/Segmented'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { FileChange } from './FileChange'
import { PullActions } from './PullPanel'
import { Remarks } from './Remarks'

const wide = matchMedia('(min-width: 900px)')
const watchWide = (listener: () => void) => {
  wide.addEventListener('change', listener)
  return () => wide.removeEventListener('change', listener)
}

export function Changes({ task, pull }: { task: Task; pull: PullRequest | undefined }) {
  const isWide = useSyncExternalStore(watchWide, () => wide.matches)
  const [chosen, setChosen] = useState<'split' | 'inline'>()
  const mode = chosen ?? (isWide ? 'split' : 'inline')
  const ofPull = useQuery({ ...pullDiffQuery(pull?.id ?? ''), enabled: Boolean(pull) })
  const ofTask = useQuery({ ...taskDiffQuery(task.id), enabled: !pull })
  const comments = useQuery({ ...commentsQuery(pull?.id ?? ''), enabled: Boolean(pull) })
  const diff = pull ? ofPull : ofTask
  const byFile = useMemo(() => groupByFile(comments.data ?? []), [comments.data])
  if (diff.isPending) return <Rows what="the changes" />
  if (diff.isError && !diff.data) return <ErrorState error={diff.error} what="The changes" retry={() => void diff.refetch()} />
  const files = diff.data?.files ?? []
  if (files.length === 0) return <Empty icon={<FileIcon aria-hidden />} title="Nothing has changed yet">The diff appears as soon as the agent commits something.</Empty>
  const added = files.reduce((sum, file) => sum + file.additions, 0)
  const removed = files.reduce((sum, file) => sum + file.deletions, 0)
  return (
    <div className="mx-auto max-w-[110rem] space-y-4 p-3 sm:p-5">
      <div className="flex flex-wrap items-center gap-3">
        <p className="text-sm"><b className="font-medium">{count(files.length, 'file')}</b> <span className="tabular text-ok">+{added}</span> <span className="tabular text-danger">−{removed}</span></p>
        {pull && <p className="font-mono text-xs text-muted">{pull.base} ← {pull.head}</p>}
        <div className="ml-auto flex flex-wrap items-center gap-2">
          <Segmented label="How to show changes" value={mode} onChange={setChosen} options={[{ value: 'split', name: 'Side by side', label: <><Columns2 aria-hidden /><span className="max-sm:hidden">Split</span></> }, { value: 'inline', name: 'Inline', label: <><Rows2 aria-hidden /><span className="max-sm:hidden">Inline</span></> }]} />
          {pull && <PullActions pull={pull} task={task} />}
        </div>
      </div>
      {files.map((file) => <FileChange key={file.path} file={file} mode={mode} pull={pull} squad={task.squad_id} comments={byFile.get(file.path) ?? NONE} />)}
      {diff.data?.truncated && <p className="text-center text-sm text-muted">Some changes were left out because they are very large.</p>}
      {pull && <Remarks pull={pull} squad={task.squad_id} comments={byFile.get('') ?? NONE} />}
    </div>
  )
}

const NONE: ReviewComment[] = []

function groupByFile(comments: ReviewComment[]): Map<string, ReviewComment[]> {
  const groups = new Map<string, ReviewComment[]>()
  for (const comment of comments) {
    const path = comment.path ?? ''
    groups.set(path, [...(groups.get(path) ?? []), comment])
  }
  return groups
}
