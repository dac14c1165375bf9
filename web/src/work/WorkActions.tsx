import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleStop, Ellipsis, Square } from 'lucide-react'
import { cancelCommand, cancelExecution } from '@/api/tasks'
import type { Execution, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Menu } from '@/ui/Menu'
import { say } from '@/ui/toast'

export function WorkActions({ execution, task }: { execution: Execution; task: Task }) {
  const confirm = useConfirm()
  const may = useMay(task.squad_id, 'member')
  const stopCommand = useMutation({ mutationFn: () => cancelCommand(execution.id), meta: { failed: 'The command goes on' }, onSuccess: () => say('The command was stopped') })
  const stop = useMutation({ mutationFn: () => cancelExecution(execution.id, 'stopped from the page'), meta: { failed: 'The agent goes on' } })
  const live = execution.status === 'running' || execution.status === 'waiting' || execution.status === 'queued'
  const end = async () => {
    const yes = await confirm({ title: 'Stop this agent?', lost: 'What it committed stays on its branch; what it did since the last checkpoint is lost.', verb: 'Stop it' })
    if (yes) stop.mutate()
  }
  return (
    <>
      <Link to="/squads/$squadId/tasks/$number" params={{ squadId: task.squad_id, number: String(task.number) }} className="text-sm text-accent hover:underline">Task #{task.number}</Link>
      {may && live && (
        <Menu
          trigger={<Button look="quiet" size="icon" aria-label="Steer the agent"><Ellipsis aria-hidden className="size-4" /></Button>}
          items={[
            { label: 'Stop the running command', icon: <CircleStop aria-hidden />, onSelect: () => stopCommand.mutate() },
            { label: 'Stop the agent…', icon: <Square aria-hidden />, danger: true, onSelect: () => void end() },
          ]}
        />
      )}
    </>
  )
}
