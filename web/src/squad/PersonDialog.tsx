import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { putPerson } from '@/api/squads'
import { createUser, signInLink, usersQuery } from '@/api/system'
import type { SignInLink, SquadUser } from '@/api/types'
import { full } from '@/format/time'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select } from '@/ui/Field'
import { ErrorState } from '@/ui/States'
import { say } from '@/ui/toast'

interface Props { squad: string; present: SquadUser[]; onClose: () => void; onLink: (link: SignInLink) => void }

/** Gives a user a place in the squad; a new one gets a link to sign in with. */
export function PersonDialog({ squad, present, onClose, onLink }: Props) {
  const users = useQuery(usersQuery)
  const cache = useQueryClient()
  const [form, setForm] = useState({ user: '', name: '', email: '', role: 'member' })
  const set = (key: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const others = (users.data ?? []).filter((user) => !present.some((each) => each.user_id === user.id))
  const add = useMutation({
    mutationFn: async () => {
      const id = form.user || (await createUser({ name: form.name.trim(), ...(form.email.trim() && { email: form.email.trim() }) })).id
      await putPerson(squad, id, form.role as SquadUser['role'])
      return form.user ? undefined : signInLink(id)
    },
    meta: { failed: 'The person was not added' },
    onSuccess: async (link) => {
      await Promise.all([cache.invalidateQueries({ queryKey: keys.people(squad) }), cache.invalidateQueries({ queryKey: keys.users })])
      onClose()
      if (link) onLink(link)
      else say('They have a place in the squad')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Add a person" about="Someone who is known here, or someone new.">
      {users.isError && <ErrorState error={users.error} what="The users" />}
      <form onSubmit={submit} className="space-y-4">
        <Field label="Who">{(id) => <Select id={id} value={form.user} onChange={set('user')}><option value="">Someone new</option>{others.map((user) => <option key={user.id} value={user.id}>{user.name}</option>)}</Select>}</Field>
        {!form.user && (
          <div className="grid gap-4 sm:grid-cols-2">
            <Field label="Name">{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={100} />}</Field>
            <Field label="Mail address">{(id) => <Input id={id} type="email" value={form.email} onChange={set('email')} placeholder="optional" />}</Field>
          </div>
        )}
        <Field label="Role">{(id) => <Select id={id} value={form.role} onChange={set('role')}><option value="viewer">Viewer: reads everything</option><option value="member">Member: gives out work, reviews, merges</option><option value="admin">Administrator: changes the squad</option></Select>}</Field>
        <div className="flex justify-end gap-2 pt-2"><Button look="quiet" onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={add.isPending}>Add</Button></div>
      </form>
    </Dialog>
  )
}

/** A link that signs in once; whoever has it, is that person. */
export function LinkDialog({ link, onClose }: { link: SignInLink; onClose: () => void }) {
  const copy = async () => {
    await navigator.clipboard.writeText(link.url)
    say('Copied')
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Sign-in link" about={`Works once, until ${full(link.expires_at)}. Hand it over in private: whoever opens it is signed in.`}>
      <div className="flex gap-2">
        <Input aria-label="Sign-in link" readOnly className="font-mono" value={link.url} onFocus={(event) => event.target.select()} />
        {navigator.clipboard && <Button onClick={() => void copy()}>Copy</Button>}
      </div>
    </Dialog>
  )
}
