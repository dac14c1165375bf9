import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Bot } from 'lucide-react'
import { membersQuery } from '@/api/squads'
import { activeQuery, tasksQuery } from '@/api/tasks'
import type { Execution, Member, Task } from '@/api/types'
import { Header } from '@/app/Header'
import { useSquad } from '@/app/SquadContext'
import { StepBar } from '@/board/StepBar'
import { livenessWords, pulseOf } from '@/board/steps'
import { Avatar } from '@/ui/Avatar'
import { Badge } from '@/ui/Badge'
import { Empty, ErrorState, Rows } from '@/ui/States'

export function AgentsPage() {
  const squad = useSquad()
  const members = useQuery(membersQuery(squad.id))
  const active = useQuery(activeQuery(squad.id))
  const tasks = useQuery(tasksQuery(squad.id))
  const busy = new Map((active.data ?? []).map((execution) => [execution.member_id, execution]))
  return (
    <>
      <Header title="Agents" about={members.data && `${(active.data ?? []).filter((each) => each.status === 'running').length} of ${members.data.length} at work`} />
      <div className="min-h-0 flex-1 overflow-y-auto">
        {members.isPending && <Rows what="the agents" />}
        {members.isError && !members.data && <ErrorState error={members.error} what="The agents" retry={() => void members.refetch()} />}
        {members.data?.length === 0 && (
          <Empty icon={<Bot aria-hidden />} title="This squad has no members yet" action={<Link to="/squads/$squadId/settings" params={{ squadId: squad.id }} className="text-sm text-accent underline">Add one in the squad’s settings</Link>}>
            A member is an agent with a role: Claude Code, Codex, the built-in loop, or any command.
          </Empty>
        )}
        <ul className="grid gap-3 p-4 sm:grid-cols-2 sm:p-5 xl:grid-cols-3">
          {(members.data ?? []).map((member) => {
            const execution = busy.get(member.id)
            return <AgentCard key={member.id} member={member} execution={execution} task={tasks.data?.find((task) => task.id === execution?.task_id)} />
          })}
        </ul>
      </div>
    </>
  )
}

function AgentCard({ member, execution, task }: { member: Member; execution: Execution | undefined; task: Task | undefined }) {
  return (
    <li className="relative flex flex-col gap-3 rounded-lg border bg-surface p-4 shadow-card transition-colors hover:border-line-strong">
      <div className="flex items-center gap-3">
        <Avatar id={member.id} name={member.name} size={36} pulse={execution ? pulseOf(execution) : 'idle'} />
        <div className="min-w-0 flex-1">
          <h2 className="font-medium">
            <Link to="/squads/$squadId/agents/$memberId" params={{ squadId: member.squad_id, memberId: member.id }} className="after:absolute after:inset-0 after:rounded-lg">{member.name}</Link>
          </h2>
          <p className="truncate text-xs text-muted">{member.role.replaceAll('_', ' ')}{member.specialization && ` · ${member.specialization}`}</p>
        </div>
        {!member.is_active && <Badge>inactive</Badge>}
      </div>
      {execution ? (
        <div className="space-y-2 text-sm">
          <p className="truncate">{task ? <><span className="tabular text-faint">#{task.number}</span> {task.title}</> : 'At work'}</p>
          <StepBar execution={execution} />
          <p className="truncate font-mono text-xs text-muted">{livenessWords(execution)}</p>
        </div>
      ) : <p className="text-sm text-faint">Idle</p>}
    </li>
  )
}
