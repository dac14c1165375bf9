import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ArrowRight, Trash2, UserRound, X } from 'lucide-react'
import { keys } from '@/api/keys'
import { bulkTasks } from '@/api/tasks'
import type { Member, TaskBulk } from '@/api/types'
import { count } from '@/format/number'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Menu } from '@/ui/Menu'
import { say } from '@/ui/toast'
import { COLUMNS } from './order'

/** What can be done with the chosen cards at once. Each is done or refused by itself. */
export function BulkBar({ squad, ids, members, onDone }: { squad: string; ids: string[]; members: Member[]; onDone: () => void }) {
  const cache = useQueryClient()
  const confirm = useConfirm()
  const act = useMutation({
    mutationFn: (bulk: Omit<TaskBulk, 'ids'>) => bulkTasks({ ...bulk, ids }),
    meta: { failed: 'Nothing was changed' },
    onSuccess: async (results) => {
      const refused = results.filter((result) => !result.ok)
      if (refused.length === 0) say(`${count(results.length, 'task')} changed`)
      else say(`${count(refused.length, 'task')} of ${results.length} refused`, 'danger', refused[0]?.error)
      await cache.invalidateQueries({ queryKey: keys.tasks(squad) })
      onDone()
    },
  })
  if (ids.length === 0) return null
  const remove = async () => {
    const yes = await confirm({ title: `Delete ${count(ids.length, 'task')}?`, lost: 'Their descriptions, executions and logs are gone for good. Branches that were pushed stay in the repository.', verb: 'Delete' })
    if (yes) act.mutate({ action: 'delete' })
  }
  return (
    <div role="toolbar" aria-label="Chosen tasks" className="fixed bottom-20 left-1/2 z-30 flex -translate-x-1/2 animate-rise items-center gap-1 rounded-xl border bg-raised p-1.5 shadow-lift sm:bottom-16">
      <span className="tabular px-2 text-sm font-medium whitespace-nowrap">{ids.length} chosen</span>
      <Menu
        trigger={<Button look="quiet" size="sm" busy={act.isPending}><ArrowRight aria-hidden className="size-4" />Move</Button>}
        items={COLUMNS.map(({ status, name }) => ({ label: name, onSelect: () => act.mutate({ action: 'move', status }) }))}
      />
      <Menu
        trigger={<Button look="quiet" size="sm"><UserRound aria-hidden className="size-4" />Assign</Button>}
        items={[...members.map((member) => ({ label: member.name, onSelect: () => act.mutate({ action: 'assign', assignee_id: member.id }) })), 'line' as const, { label: 'Nobody', onSelect: () => act.mutate({ action: 'assign', assignee_id: '' }) }]}
      />
      <Button look="quiet" size="sm" aria-label="Delete" onClick={() => void remove()}><Trash2 aria-hidden className="size-4 text-danger" /></Button>
      <Button look="quiet" size="sm" aria-label="Clear the choice" onClick={onDone}><X aria-hidden className="size-4" /></Button>
    </div>
  )
}
