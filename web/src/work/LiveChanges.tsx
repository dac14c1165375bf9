import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { FileDiff as Icon } from 'lucide-react'
import { liveDiffQuery } from '@/api/tasks'
import type { Execution } from '@/api/types'
import { FileChange } from '@/task/FileChange'
import { Empty, ErrorState, Rows } from '@/ui/States'

const EVERY_MS = 4000

export default function LiveChanges({ execution }: { execution: Execution | undefined }) {
  if (!execution) return <Empty icon={<Icon aria-hidden />} title="No work yet">Changes appear here as the agent makes them.</Empty>
  return <ChangesOf key={execution.id} execution={execution} />
}

/** The agent's changes against the base, read again while it works and once when it ended. */
function ChangesOf({ execution }: { execution: Execution }) {
  const running = execution.status === 'running'
  const diff = useQuery({ ...liveDiffQuery(execution), refetchInterval: running ? EVERY_MS : false, placeholderData: keepPreviousData })
  if (diff.isPending) return <Rows what="the changes" />
  if (diff.isError && !diff.data) return <ErrorState error={diff.error} what="The changes" retry={() => void diff.refetch()} />
  const files = diff.data.files ?? []
  if (files.length === 0) return <Empty icon={<Icon aria-hidden />} title="Nothing has changed yet">{running ? 'The agent has not touched a file so far.' : 'The branch is the same as its base.'}</Empty>
  return <div className="mx-auto max-w-5xl space-y-4 p-4">{files.map((file) => <FileChange key={file.path} file={file} mode="inline" comments={[]} squad={execution.squad_id} />)}</div>
}
