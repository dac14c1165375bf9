import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link2, Plus, UserRound, X } from 'lucide-react'
import { useState } from 'react'
import { keys } from '@/api/keys'
import { meQuery } from '@/api/me'
import { peopleQuery, putPerson, removePerson } from '@/api/squads'
import { signInLink } from '@/api/system'
import type { SignInLink, SquadUser } from '@/api/types'
import { useMay } from '@/app/may'
import { Avatar } from '@/ui/Avatar'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Select } from '@/ui/Field'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { LinkDialog, PersonDialog } from './PersonDialog'
import { List, Section } from './Section'

const ROLES: Record<SquadUser['role'], string> = { admin: 'Administrator', member: 'Member', viewer: 'Viewer' }
const MAY = 'Viewers read. Members give out work, review and merge. Administrators also change members, repositories and secrets.'

export function People({ squad }: { squad: string }) {
  const people = useQuery(peopleQuery(squad))
  const me = useQuery(meQuery)
  const cache = useQueryClient()
  const confirm = useConfirm()
  const may = useMay(squad, 'admin')
  const [adding, setAdding] = useState(false)
  const [link, setLink] = useState<SignInLink>()
  const again = () => cache.invalidateQueries({ queryKey: keys.people(squad) })
  const change = useMutation({ mutationFn: ({ user_id, role }: SquadUser) => putPerson(squad, user_id, role), meta: { failed: 'The role was not changed' }, onSettled: again })
  const remove = useMutation({ mutationFn: (user: string) => removePerson(squad, user), meta: { failed: 'They stay in the squad' }, onSuccess: again })
  const invite = useMutation({ mutationFn: (user: string) => signInLink(user), meta: { failed: 'No link was made' }, onSuccess: setLink })
  const ask = async (each: SquadUser) => {
    if (await confirm({ title: `Take ${each.name} out of the squad?`, lost: 'They no longer see its board, agents and repositories. What they did stays.', verb: 'Take out' })) remove.mutate(each.user_id)
  }
  return (
    <Section title="People" about={MAY} action={may && <Button look="primary" onClick={() => setAdding(true)}><Plus aria-hidden className="size-4" />Add a person</Button>}>
      {people.isPending && <Rows what="the people" />}
      {people.isError && !people.data && <ErrorState error={people.error} what="The people" retry={() => void people.refetch()} />}
      {people.data?.length === 0 && <Empty icon={<UserRound aria-hidden />} title="Nobody has a place here yet">Administrators of the installation see every squad; others need a role.</Empty>}
      <List>
        {people.data?.map((each) => (
          <li key={each.user_id} className="flex items-center gap-3 p-3 sm:px-4">
            <Avatar id={each.user_id} name={each.name ?? '?'} size={32} hidden />
            <p className="flex min-w-0 flex-1 items-center gap-2 truncate text-sm font-medium">{each.name}{each.user_id === me.data?.id && <Badge tone="accent">you</Badge>}</p>
            <div className="w-36"><Select aria-label={`Role of ${each.name}`} disabled={!may} value={each.role} onChange={(event) => change.mutate({ ...each, role: event.target.value as SquadUser['role'] })}>{Object.entries(ROLES).map(([role, name]) => <option key={role} value={role}>{name}</option>)}</Select></div>
            {me.data?.admin && <Button look="quiet" size="icon" aria-label={`Make a sign-in link for ${each.name}`} busy={invite.isPending && invite.variables === each.user_id} onClick={() => invite.mutate(each.user_id)}><Link2 aria-hidden className="size-4" /></Button>}
            {may && <Button look="quiet" size="icon" aria-label={`Take ${each.name} out`} onClick={() => void ask(each)}><X aria-hidden className="size-4" /></Button>}
          </li>
        ))}
      </List>
      {adding && <PersonDialog squad={squad} present={people.data ?? []} onClose={() => setAdding(false)} onLink={setLink} />}
      {link && <LinkDialog link={link} onClose={() => setLink(undefined)} />}
    </Section>
  )
}
