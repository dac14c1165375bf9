import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { createSandbox } from '@/api/sandboxes'
import { repositoriesQuery } from '@/api/squads'
import { templatesQuery } from '@/api/system'
import type { Sandbox } from '@/api/types'
import { upsert } from '@/live/reduce'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select } from '@/ui/Field'
import { say } from '@/ui/toast'

/** A sandbox for a person: to try something, or to look at a repository. */
export function NewSandboxDialog({ squad, onClose }: { squad: string; onClose: () => void }) {
  const templates = useQuery(templatesQuery)
  const repositories = useQuery(repositoriesQuery(squad))
  const cache = useQueryClient()
  const [form, setForm] = useState({ template: '', provider: '', repository: '', hours: '1' })
  const set = (key: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const make = useMutation({
    mutationFn: () => createSandbox({
      squad_id: squad,
      timeout_sec: Math.round(Number(form.hours) * 3600),
      ...(form.template && { template: form.template }),
      ...(form.provider && { provider: form.provider as 'local' | 'e2b' }),
      ...(form.repository && { repository_id: form.repository }),
    }),
    meta: { failed: 'No sandbox was made' },
    onSuccess: (row) => {
      cache.setQueryData<Sandbox[]>(keys.allSandboxes, (list) => upsert(list, row))
      say('The sandbox runs')
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    make.mutate()
  }
  const ready = (templates.data ?? []).filter((each) => each.status === 'ready' && each.name !== 'base')
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="New sandbox" about="A machine of your own, apart from the agents’.">
      <form onSubmit={submit} className="space-y-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Template">{(id) => <Select id={id} value={form.template} onChange={set('template')}><option value="">The squad’s</option><option value="base">base</option>{ready.map((each) => <option key={each.id} value={each.name}>{each.name}</option>)}</Select>}</Field>
          <Field label="Runs on">{(id) => <Select id={id} value={form.provider} onChange={set('provider')}><option value="">The squad’s provider</option><option value="local">This machine</option><option value="e2b">E2B</option></Select>}</Field>
          <Field label="Checkout of">{(id) => <Select id={id} value={form.repository} onChange={set('repository')}><option value="">Nothing</option>{(repositories.data ?? []).map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}</Select>}</Field>
          <Field label="Lives for, hours">{(id) => <Input id={id} type="number" min="0.1" max="24" step="0.1" required value={form.hours} onChange={set('hours')} />}</Field>
        </div>
        <div className="flex justify-end gap-2 pt-2"><Button look="quiet" onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={make.isPending}>Make it</Button></div>
      </form>
    </Dialog>
  )
}
