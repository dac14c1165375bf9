import { Activity as Icon } from 'lucide-react'
import type { Execution, Task } from '@/api/types'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Entry } from './Entry'
import { Feed } from './Feed'
import type { Work } from './items'
import { NowCard } from './NowCard'
import { PlanCard } from './PlanCard'

interface Props { work: Work; execution: Execution | undefined; task: Task | undefined; pending: boolean; error: Error | null; retry: () => void }

export function Activity({ work, execution, task, pending, error, retry }: Props) {
  if (!execution) return <Empty icon={<Icon aria-hidden />} title="Nothing to see yet">As soon as this agent gets a task, what it does appears here.</Empty>
  if (pending) return <Rows what="the activity" />
  if (error) return <ErrorState error={error} what="The activity" retry={retry} />
  if (work.items.length === 0) return <Empty icon={<Icon aria-hidden />} title={execution.status === 'queued' ? 'Waits for its turn' : 'It has just begun'}>Tool calls, messages and steps appear here as they happen.</Empty>
  return (
    <div className="flex h-full flex-col lg:flex-row">
      <div className="min-h-0 min-w-0 flex-1"><Feed items={work.items} keyOf={(item) => item.key} row={(item) => <Entry item={item} />} label="Activity" /></div>
      <aside className="order-first max-h-56 shrink-0 divide-y overflow-y-auto border-b bg-surface max-lg:hidden lg:order-none lg:max-h-none lg:w-72 lg:border-b-0 lg:border-l">
        <NowCard execution={execution} task={task} />
        {work.plan && <PlanCard plan={work.plan} />}
      </aside>
    </div>
  )
}
