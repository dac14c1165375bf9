import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { createRepository, credentialsQuery } from '@/api/squads'
import type { Repository } from '@/api/types'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select } from '@/ui/Field'

export function RepositoryDialog({ squad, onClose }: { squad: string; onClose: () => void }) {
  const cache = useQueryClient()
  const credentials = useQuery(credentialsQuery(squad))
  const [form, setForm] = useState({ name: '', forge: 'local', url: '', api: '', credential: '', branch: '', check: '', method: 'squash', path: '' })
  const set = (key: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const remote = form.forge !== 'local'
  const save = useMutation({
    mutationFn: () => createRepository({
      squad_id: squad,
      name: form.name.trim(),
      forge: form.forge as Repository['forge'],
      ...(remote && form.url && { url: form.url.trim() }),
      ...(form.forge === 'gitea' && form.api && { api_url: form.api.trim() }),
      ...(remote && form.credential && { credential_id: form.credential }),
      ...(form.branch && { default_branch: form.branch.trim() }),
      ...(!remote && form.path && { import_path: form.path.trim() }),
      policy: { merge_method: form.method as 'merge' | 'squash' | 'rebase', ...(form.check && { check_command: form.check }) },
    }),
    meta: { failed: 'The repository was not added' },
    onSuccess: async () => {
      await cache.invalidateQueries({ queryKey: keys.repositories(squad) })
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Add a repository" wide>
      <form onSubmit={submit} className="grid gap-4 sm:grid-cols-2">
        <Field label="Forge">{(id) => <Select id={id} value={form.forge} onChange={set('forge')}><option value="local">Local, inside this server</option><option value="github">GitHub</option><option value="gitea">Gitea</option></Select>}</Field>
        <Field label="Name" hint={remote ? 'owner/name' : 'a plain name'}>{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={200} />}</Field>
        {remote && <Field label="Clone address">{(id) => <Input id={id} type="url" value={form.url} onChange={set('url')} placeholder="https://github.com/owner/name.git" />}</Field>}
        {remote && <Field label="Credential">{(id) => <Select id={id} value={form.credential} onChange={set('credential')}><option value="">The installation’s</option>{(credentials.data ?? []).filter((each) => each.kind === 'token' || each.kind === 'github_app').map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}</Select>}</Field>}
        {form.forge === 'gitea' && <Field label="API address">{(id) => <Input id={id} type="url" value={form.api} onChange={set('api')} />}</Field>}
        {!remote && <Field label="Copy from" hint="A repository on the server’s disk; empty starts a new one">{(id) => <Input id={id} value={form.path} onChange={set('path')} className="font-mono" />}</Field>}
        <Field label="Default branch" hint="Empty means what the repository says">{(id) => <Input id={id} value={form.branch} onChange={set('branch')} placeholder="main" />}</Field>
        <Field label="Merge by">{(id) => <Select id={id} value={form.method} onChange={set('method')}><option value="squash">Squash</option><option value="merge">Merge commit</option><option value="rebase">Rebase</option></Select>}</Field>
        <Field label="Check before a push" hint="A command that must pass">{(id) => <Input id={id} value={form.check} onChange={set('check')} className="font-mono" placeholder="make test" />}</Field>
        <div className="flex justify-end gap-2 pt-2 sm:col-span-2">
          <Button look="quiet" onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={save.isPending}>Add</Button>
        </div>
      </form>
    </Dialog>
  )
}
