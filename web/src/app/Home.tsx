import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Navigate, useNavigate } from '@tanstack/react-router'
import { Users } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { createSquad, squadsQuery } from '@/api/squads'
import { Button } from '@/ui/Button'
import { Field, Input } from '@/ui/Field'
import { Spinner } from '@/ui/Spinner'
import { Empty, ErrorState } from '@/ui/States'
import { useAdministers } from './may'
import { lastSquad } from './squadChoice'

/** Goes to the squad that was open last, or makes the first one. */
export function Home() {
  const administers = useAdministers()
  const squads = useQuery(squadsQuery)
  if (squads.isPending) return <div className="flex h-full items-center justify-center"><Spinner label="Loading…" /></div>
  if (squads.isError) return <ErrorState error={squads.error} what="Your squads" retry={() => void squads.refetch()} />
  const open = squads.data.find((squad) => squad.id === lastSquad()) ?? squads.data[0]
  if (open) return <Navigate to="/squads/$squadId/board" params={{ squadId: open.id }} replace />
  return administers ? <FirstSquad /> : <Empty icon={<Users aria-hidden />} title="No squad is yours to see yet">Ask an administrator for a place in one; it appears here when you open the page again.</Empty>
}

function FirstSquad() {
  const [name, setName] = useState('')
  const cache = useQueryClient()
  const navigate = useNavigate()
  const create = useMutation({
    mutationFn: () => createSquad({ name: name.trim() }),
    meta: { failed: 'The squad was not made' },
    onSuccess: async (squad) => {
      await cache.invalidateQueries({ queryKey: keys.squads })
      await navigate({ to: '/squads/$squadId/settings', params: { squadId: squad.id } })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim()) create.mutate()
  }
  return (
    <Empty
      icon={<Users aria-hidden />}
      title="Make your first squad"
      action={
        <form onSubmit={submit} className="flex w-72 flex-col gap-3 text-left">
          <Field label="Name">{(id) => <Input id={id} value={name} onChange={(e) => setName(e.target.value)} placeholder="Platform team" required maxLength={100} />}</Field>
          <Button type="submit" look="primary" busy={create.isPending}>Make the squad</Button>
        </form>
      }
    >
      A squad is a team of agents that share repositories, keys and a budget.
    </Empty>
  )
}
