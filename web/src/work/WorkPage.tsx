import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Activity as ActivityIcon, Brain, ChevronRight, FileDiff, FolderTree, MessagesSquare, SquareTerminal } from 'lucide-react'
import { lazy, Suspense, useMemo } from 'react'
import { eventsQuery } from '@/api/events'
import { membersQuery } from '@/api/squads'
import { memberExecutionsQuery, tasksQuery } from '@/api/tasks'
import { Header } from '@/app/Header'
import { NotHere } from '@/app/NotHere'
import { useMay } from '@/app/may'
import { useSquad } from '@/app/SquadContext'
import { livenessWords, pulseOf } from '@/board/steps'
import { Avatar } from '@/ui/Avatar'
import { Select } from '@/ui/Field'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { TabBar, TabPanel, TabsRoot } from '@/ui/Tabs'
import { Question } from '@/task/Question'
import { Activity } from './Activity'
import { Conversations } from './Conversations'
import { Files } from './Files'
import { workOf } from './items'
import { Thoughts } from './Thoughts'
import { WorkActions } from './WorkActions'

const TerminalTab = lazy(() => import('./TerminalTab'))
const LiveChanges = lazy(() => import('./LiveChanges'))

const PANEL = 'min-h-0 flex-1 data-[state=inactive]:hidden'

export function WorkPage() {
  const squad = useSquad()
  const { memberId } = useParams({ from: '/frame/squads/$squadId/agents/$memberId' })
  const { tab = 'activity', execution: wanted } = useSearch({ from: '/frame/squads/$squadId/agents/$memberId' })
  const navigate = useNavigate({ from: '/squads/$squadId/agents/$memberId' })
  const members = useQuery(membersQuery(squad.id))
  const executions = useQuery(memberExecutionsQuery(memberId))
  const tasks = useQuery(tasksQuery(squad.id))
  const rows = (executions.data ?? []).toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
  const execution = rows.find((row) => row.id === wanted) ?? rows.find((row) => row.status === 'running') ?? rows[0]
  const events = useQuery({ ...eventsQuery(execution?.id ?? ''), enabled: Boolean(execution) })
  const work = useMemo(() => workOf(events.data ?? []), [events.data])
  const member = members.data?.find((each) => each.id === memberId)
  const may = useMay(squad.id, 'member')
  const task = tasks.data?.find((each) => each.id === execution?.task_id)
  if (members.isPending || (member && executions.isPending)) return <Rows what="the agent" />
  if (members.isError && !members.data) return <ErrorState error={members.error} what="The agent" retry={() => void members.refetch()} />
  if (!member) return <NotHere title="This agent does not exist" way={{ to: '/squads/$squadId/agents', params: { squadId: squad.id } }} to="To the agents">It may have been removed from the squad.</NotHere>
  if (executions.isError && !executions.data) return <ErrorState error={executions.error} what="The work" retry={() => void executions.refetch()} />
  const search = (next: { tab?: string; execution?: string }) => void navigate({ search: { ...(tab !== 'activity' && { tab }), ...(wanted && { execution: wanted }), ...next }, replace: true })
  const nameOf = (id: string) => {
    const found = tasks.data?.find((each) => each.id === id)
    return found ? `#${found.number} ${found.title}` : 'a deleted task'
  }
  return (
    <>
      <Header
        name={member.name}
        title={
          <span className="flex min-w-0 items-center gap-2">
            <Link to="/squads/$squadId/agents" params={{ squadId: squad.id }} className="text-muted hover:text-ink">Agents</Link>
            <ChevronRight aria-hidden className="size-3.5 shrink-0 text-faint" />
            <Avatar id={member.id} name={member.name} size={22} pulse={execution ? pulseOf(execution) : 'idle'} />
            {member.name}
          </span>
        }
        about={execution && <span className="font-mono text-xs">{livenessWords(execution)}</span>}
      >
        {rows.length > 0 && (
          <div className="w-64 max-sm:min-w-0 max-sm:flex-1"><Select aria-label="Which work to show" value={execution?.id} onChange={(event) => search({ execution: event.target.value })}>
            {rows.map((row) => <option key={row.id} value={row.id}>{nameOf(row.task_id)}{row.attempt > 1 ? `, attempt ${row.attempt}` : ''} ({row.status})</option>)}
          </Select></div>
        )}
        {execution && task && <WorkActions execution={execution} task={task} />}
      </Header>
      <TabsRoot value={tab} onValueChange={(next) => search({ tab: next })} className="flex min-h-0 flex-1 flex-col">
        <TabBar
          label="Work"
          tabs={[
            { value: 'activity', label: 'Activity', icon: <ActivityIcon aria-hidden />, count: work.items.length },
            { value: 'conversations', label: 'Conversations', icon: <MessagesSquare aria-hidden /> },
            { value: 'thoughts', label: 'Thoughts', icon: <Brain aria-hidden />, count: work.thoughts.length },
            { value: 'terminal', label: 'Terminal', icon: <SquareTerminal aria-hidden /> },
            ...(may ? [{ value: 'files', label: 'Files', icon: <FolderTree aria-hidden /> }] : []),
            { value: 'changes', label: 'Changes', icon: <FileDiff aria-hidden /> },
          ]}
        />
        {task && <div className="shrink-0 px-4 empty:hidden [&>section]:mx-auto [&>section]:mt-3 [&>section]:max-w-4xl"><Question task={task} execution={execution} /></div>}
        <TabPanel value="activity" className={PANEL}><Activity work={work} execution={execution} task={task} pending={events.isPending && Boolean(execution)} error={events.data ? null : events.error} retry={() => void events.refetch()} /></TabPanel>
        <TabPanel value="conversations" className={PANEL}><Conversations member={member} execution={execution} task={task} /></TabPanel>
        <TabPanel value="thoughts" className={PANEL}><Thoughts thoughts={work.thoughts} pending={events.isPending && Boolean(execution)} /></TabPanel>
        <TabPanel value="terminal" className={PANEL}><Suspense fallback={<Rows what="the terminal" />}><TerminalTab events={events.data} execution={execution} /></Suspense></TabPanel>
        <TabPanel value="files" className={PANEL}>{may ? <Files member={member} execution={execution} /> : <Empty icon={<FolderTree aria-hidden />} title="For members of the squad">Only they may look into a sandbox.</Empty>}</TabPanel>
        <TabPanel value="changes" className={`${PANEL} overflow-y-auto`}><Suspense fallback={<Rows what="the changes" />}><LiveChanges execution={execution} /></Suspense></TabPanel>
      </TabsRoot>
    </>
  )
}
