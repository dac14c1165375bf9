import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { changeRepository, createRepository, credentialsQuery } from '@/api/squads'
import type { Repository } from '@/api/types'
import { upsert } from '@/live/reduce'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select, Textarea } from '@/ui/Field'
import { changeOf, formOf, newOf, type RepositoryForm } from './repository'

export function RepositoryDialog({ squad, repository, onClose }: { squad: string; repository?: Repository | undefined; onClose: () => void }) {
  const cache = useQueryClient()
  const credentials = useQuery(credentialsQuery(squad))
  const [form, setForm] = useState<RepositoryForm>(() => formOf(repository))
  const set = (key: keyof RepositoryForm) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const remote = form.forge !== 'local'
  const save = useMutation({
    mutationFn: () => (repository ? changeRepository(repository.id, changeOf(form, repository)) : createRepository({ squad_id: squad, ...newOf(form) })),
    meta: { failed: repository ? 'The repository was not changed' : 'The repository was not added' },
    onSuccess: (row) => {
      cache.setQueryData<Repository[]>(keys.repositories(squad), (list) => upsert(list, row))
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const usable = (credentials.data ?? []).filter((each) => each.kind === 'token' || each.kind === 'github_app')
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={repository ? `Edit ${repository.name}` : 'Add a repository'} wide>
      <form onSubmit={submit} className="grid gap-4 sm:grid-cols-2">
        <Field label="Forge">{(id) => <Select id={id} value={form.forge} onChange={set('forge')} disabled={Boolean(repository)}><option value="local">Local, inside this server</option><option value="github">GitHub</option><option value="gitea">Gitea</option></Select>}</Field>
        <Field label="Name" hint={remote ? 'owner/name' : 'a plain name'}>{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={200} />}</Field>
        {remote && !repository && <Field label="Clone address">{(id) => <Input id={id} type="url" value={form.url} onChange={set('url')} placeholder="https://github.com/owner/name.git" />}</Field>}
        {remote && <Field label="Credential">{(id) => <Select id={id} value={form.credential} onChange={set('credential')}><option value="">The installation’s</option>{usable.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}</Select>}</Field>}
        {form.forge === 'gitea' && !repository && <Field label="API address">{(id) => <Input id={id} type="url" value={form.api} onChange={set('api')} />}</Field>}
        {!remote && !repository && <Field label="Copy from" hint="A repository on the server’s disk; empty starts a new one">{(id) => <Input id={id} value={form.path} onChange={set('path')} className="font-mono" />}</Field>}
        <Field label="Default branch" hint={repository ? undefined : 'Empty means what the repository says'}>{(id) => <Input id={id} value={form.branch} onChange={set('branch')} placeholder="main" required={Boolean(repository)} />}</Field>
        <Field label="Merge by">{(id) => <Select id={id} value={form.method} onChange={set('method')}><option value="squash">Squash</option><option value="merge">Merge commit</option><option value="rebase">Rebase</option></Select>}</Field>
        <Field label="Check before a push" hint="A command that must pass">{(id) => <Input id={id} value={form.check} onChange={set('check')} className="font-mono" placeholder="make test" />}</Field>
        {remote && <Field label="Reviewers" hint="Names on the forge, separated by commas">{(id) => <Input id={id} value={form.reviewers} onChange={set('reviewers')} />}</Field>}
        <Field label="Labels of pull requests" hint="Separated by commas">{(id) => <Input id={id} value={form.labels} onChange={set('labels')} />}</Field>
        <Field label="Pull requests begin as">{(id) => <Select id={id} value={form.draft} onChange={set('draft')}><option value="">Ready for review</option><option value="draft">Drafts</option></Select>}</Field>
        <Field label="Merge train" hint="Merges one after the other, each checked against the one before">{(id) => <Select id={id} value={form.train} onChange={set('train')}><option value="">Off</option><option value="on">On</option></Select>}</Field>
        {repository && <div className="sm:col-span-2"><Field label="Template of pull requests" hint="Markdown; empty means ours">{(id) => <Textarea id={id} rows={4} className="font-mono" value={form.template} onChange={set('template')} />}</Field></div>}
        <div className="flex justify-end gap-2 pt-2 sm:col-span-2">
          <Button look="quiet" onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={save.isPending}>{repository ? 'Save' : 'Add'}</Button>
        </div>
      </form>
    </Dialog>
  )
}
