import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { ChevronRight, FileDiff, Info } from 'lucide-react'
import { lazy, Suspense } from 'react'
import { pullsQuery } from '@/api/pulls'
import { executionsQuery, tasksQuery } from '@/api/tasks'
import { Header } from '@/app/Header'
import { NotHere } from '@/app/NotHere'
import { useSquad } from '@/app/SquadContext'
import { columnName } from '@/board/order'
import { Badge } from '@/ui/Badge'
import { ErrorState, Rows } from '@/ui/States'
import { TabBar, TabPanel, TabsRoot } from '@/ui/Tabs'
import { Description } from './Description'
import { Executions } from './Executions'
import { Properties } from './Properties'
import { PullPanel } from './PullPanel'
import { Question } from './Question'
import { STATUS_TONES } from './tones'
import { Trouble } from './Trouble'
import { TaskActions } from './TaskActions'

const Changes = lazy(() => import('./Changes').then((module) => ({ default: module.Changes })))

export function TaskPage() {
  const squad = useSquad()
  const { number } = useParams({ from: '/frame/squads/$squadId/tasks/$number' })
  const { tab = 'overview' } = useSearch({ from: '/frame/squads/$squadId/tasks/$number' })
  const navigate = useNavigate({ from: '/squads/$squadId/tasks/$number' })
  const tasks = useQuery(tasksQuery(squad.id))
  const pulls = useQuery(pullsQuery(squad.id))
  const task = tasks.data?.find((each) => String(each.number) === number)
  const executions = useQuery({ ...executionsQuery(task?.id ?? ''), enabled: Boolean(task) })
  if (tasks.isPending) return <Rows what="the task" />
  if (tasks.isError && !tasks.data) return <ErrorState error={tasks.error} what="The task" retry={() => void tasks.refetch()} />
  if (!task) return <NotHere title={`There is no task #${number}`} way={{ to: '/squads/$squadId/board', params: { squadId: squad.id } }}>It may have been deleted, or it belongs to another squad.</NotHere>
  const execution = executions.data?.find((each) => each.id === task.execution_id)
  const pull = pulls.data?.findLast((each) => each.task_id === task.id)
  return (
    <>
      <Header
        name={`#${task.number} ${task.title}`}
        title={
          <span className="flex min-w-0 items-center gap-1.5">
            <Link to="/squads/$squadId/board" params={{ squadId: squad.id }} className="text-muted hover:text-ink">Board</Link>
            <ChevronRight aria-hidden className="size-3.5 shrink-0 text-faint" />
            <span className="tabular">#{task.number}</span>
            <Badge tone={STATUS_TONES[task.status]} className="ml-1.5">{columnName(task.status)}</Badge>
          </span>
        }
      >
        <TaskActions task={task} pull={pull} />
      </Header>
      <TabsRoot value={tab} onValueChange={(next) => void navigate({ search: next === 'overview' ? {} : { tab: next }, replace: true })} className="flex min-h-0 flex-1 flex-col">
        <TabBar label="Task" tabs={[{ value: 'overview', label: 'Overview', icon: <Info aria-hidden /> }, { value: 'changes', label: 'Changes', icon: <FileDiff aria-hidden /> }]} />
        <TabPanel value="overview" className="min-h-0 flex-1 overflow-y-auto">
          <div className="mx-auto grid max-w-6xl gap-x-10 gap-y-6 p-4 sm:p-6 lg:grid-cols-[minmax(0,1fr)_17rem]">
            <div className="min-w-0 space-y-8">
              <Description task={task} />
              <Trouble task={task} execution={execution} />
              <Question task={task} execution={execution} />
              {pull && <PullPanel pull={pull} task={task} />}
              <Executions task={task} />
            </div>
            <Properties task={task} />
          </div>
        </TabPanel>
        <TabPanel value="changes" className="min-h-0 flex-1 overflow-y-auto">
          <Suspense fallback={<Rows what="the changes" />}><Changes task={task} pull={pull} /></Suspense>
        </TabPanel>
      </TabsRoot>
    </>
  )
}
