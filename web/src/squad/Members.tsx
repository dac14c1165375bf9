import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Bot, Ellipsis, Pencil, Plus, Power, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { keys } from '@/api/keys'
import { changeMember, deleteMember, membersQuery } from '@/api/squads'
import type { Member } from '@/api/types'
import { useMay } from '@/app/may'
import { Avatar } from '@/ui/Avatar'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Menu } from '@/ui/Menu'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { MemberDialog } from './MemberDialog'
import { List, Section } from './Section'

const scriptOf = (command: string) => {
  const lines = command.trim().split('\n')
  return lines.length > 1 ? `a script of ${lines.length} lines` : command
}

const agentOf = (member: Member) => {
  const { agent, preset, command } = member.config
  if (agent === 'acp') return preset ? `${preset} (ACP)` : (command ?? 'ACP')
  if (agent === 'command') return scriptOf(command ?? 'command')
  return [member.llm_provider, member.llm_model].filter(Boolean).join(' / ') || 'built-in loop'
}

export function Members({ squad }: { squad: string }) {
  const members = useQuery(membersQuery(squad))
  const cache = useQueryClient()
  const confirm = useConfirm()
  const may = useMay(squad, 'admin')
  const [editing, setEditing] = useState<Member | 'new'>()
  const again = () => cache.invalidateQueries({ queryKey: keys.members(squad) })
  const toggle = useMutation({ mutationFn: (member: Member) => changeMember(member.id, { is_active: !member.is_active }), meta: { failed: 'The member was not changed' }, onSuccess: again })
  const remove = useMutation({ mutationFn: (member: Member) => deleteMember(member.id), meta: { failed: 'The member was not removed' }, onSuccess: again })
  const ask = async (member: Member) => {
    if (await confirm({ title: `Remove ${member.name}?`, lost: 'Its prompt and limits are gone. What it did stays in the tasks.', verb: 'Remove' })) remove.mutate(member)
  }
  return (
    <Section title="Members" about="Agents with a role. Each works in a sandbox of its own." action={may && <Button look="primary" onClick={() => setEditing('new')}><Plus aria-hidden className="size-4" />Add a member</Button>}>
      {members.isPending && <Rows what="the members" />}
      {members.isError && !members.data && <ErrorState error={members.error} what="The members" retry={() => void members.refetch()} />}
      {members.data?.length === 0 && <Empty icon={<Bot aria-hidden />} title="No members yet">{may ? 'Add the first agent of this squad.' : 'An administrator of the squad can add one.'}</Empty>}
      <List>
        {members.data?.map((member) => (
          <li key={member.id} className="flex items-center gap-3 p-3 sm:px-4">
            <Avatar id={member.id} name={member.name} size={32} hidden />
            <div className="min-w-0 flex-1">
              <p className="flex flex-wrap items-center gap-2 text-sm font-medium">{member.name}<Badge>{member.role.replaceAll('_', ' ')}</Badge>{!member.is_active && <Badge tone="warn">inactive</Badge>}</p>
              <p className="truncate text-xs text-muted">{agentOf(member)}{member.specialization && ` · ${member.specialization}`}</p>
            </div>
            {may && (
              <Menu
                trigger={<Button look="quiet" size="icon" aria-label={`What to do with ${member.name}`}><Ellipsis aria-hidden className="size-4" /></Button>}
                items={[
                  { label: 'Edit', icon: <Pencil aria-hidden />, onSelect: () => setEditing(member) },
                  { label: member.is_active ? 'Send on leave' : 'Bring back', icon: <Power aria-hidden />, onSelect: () => toggle.mutate(member) },
                  'line',
                  { label: 'Remove…', icon: <Trash2 aria-hidden />, danger: true, onSelect: () => void ask(member) },
                ]}
              />
            )}
          </li>
        ))}
      </List>
      {editing && <MemberDialog squad={squad} member={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />}
    </Section>
  )
}
