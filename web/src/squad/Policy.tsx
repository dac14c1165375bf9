import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { changeSquad } from '@/api/squads'
import type { Squad } from '@/api/types'
import { useMay } from '@/app/may'
import { upsert } from '@/live/reduce'
import { Button } from '@/ui/Button'
import { Field, Input, Select, Textarea } from '@/ui/Field'
import { say } from '@/ui/toast'
import { Section } from './Section'
import { configOf, formOf, type PolicyForm } from './policy'

export function Policy({ squad }: { squad: Squad }) {
  const cache = useQueryClient()
  const may = useMay(squad.id, 'admin')
  const [form, setForm] = useState<PolicyForm>(() => formOf(squad))
  const set = (key: keyof PolicyForm) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const save = useMutation({
    mutationFn: () => changeSquad(squad.id, { name: form.name.trim(), description: form.description, status: form.status, config: configOf(form, squad.config) }),
    meta: { failed: 'Nothing was saved' },
    onSuccess: (row) => {
      cache.setQueryData<Squad[]>(keys.squads, (list) => upsert(list, row))
      say('Saved')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form onSubmit={submit}>
      <fieldset disabled={!may}>
        <Section title="The squad" about="A paused squad starts nothing new; an archived one is only read.">
          <div className="grid gap-4 sm:grid-cols-2">
            <Field label="Name">{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={100} />}</Field>
            <Field label="State">{(id) => <Select id={id} value={form.status} onChange={(e) => setForm({ ...form, status: e.target.value as Squad['status'] })}><option value="active">Active</option><option value="paused">Paused</option><option value="archived">Archived</option></Select>}</Field>
            <div className="sm:col-span-2"><Field label="Description">{(id) => <Input id={id} value={form.description} onChange={set('description')} />}</Field></div>
          </div>
        </Section>
        <Section title="Budget" about="In US dollars. Past a limit the gateway refuses further model calls; empty means no limit.">
          <div className="grid gap-4 sm:grid-cols-4">
            {([['task', 'A task'], ['day', 'A day'], ['total', 'In all']] as const).map(([key, label]) => <Field key={key} label={label}>{(id) => <Input id={id} type="number" min="0" step="0.01" value={form[key]} onChange={set(key)} />}</Field>)}
            <Field label="Tokens of a task">{(id) => <Input id={id} type="number" min="0" value={form.tokens} onChange={set('tokens')} />}</Field>
          </div>
        </Section>
        <Section title="Sandboxes" about="Where agents work and how many at once.">
          <div className="grid gap-4 sm:grid-cols-4">
            <Field label="Provider">{(id) => <Select id={id} value={form.provider} onChange={set('provider')}><option value="">Default</option><option value="local">This machine</option><option value="e2b">E2B</option></Select>}</Field>
            <Field label="Template">{(id) => <Input id={id} value={form.template} onChange={set('template')} placeholder="base" />}</Field>
            <Field label="Running at once">{(id) => <Input id={id} type="number" min="0" value={form.running} onChange={set('running')} placeholder="default" />}</Field>
            <Field label="Tries of a task">{(id) => <Input id={id} type="number" min="0" value={form.attempts} onChange={set('attempts')} placeholder="3" />}</Field>
          </div>
        </Section>
        <Section title="What agents may reach and run" about="One entry a line. Everything else is refused with the name of the rule.">
          <div className="grid gap-4 sm:grid-cols-3">
            <Field label="Domains" hint="Empty means the installation’s list">{(id) => <Textarea id={id} rows={5} className="font-mono" value={form.egress} onChange={set('egress')} placeholder="*.golang.org" />}</Field>
            <Field label="Commands allowed" hint="Patterns; empty means all">{(id) => <Textarea id={id} rows={5} className="font-mono" value={form.allow} onChange={set('allow')} />}</Field>
            <Field label="Commands refused">{(id) => <Textarea id={id} rows={5} className="font-mono" value={form.deny} onChange={set('deny')} />}</Field>
          </div>
        </Section>
      </fieldset>
      {may && <div className="sticky bottom-0 flex justify-end border-t bg-canvas p-3"><Button type="submit" look="primary" busy={save.isPending}>Save</Button></div>}
    </form>
  )
}
