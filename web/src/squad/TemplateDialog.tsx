import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { buildTemplate } from '@/api/system'
import type { Template } from '@/api/types'
import { upsert } from '@/live/reduce'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select, Textarea } from '@/ui/Field'

interface Props { name: string; templates: Template[]; onClose: () => void }

export function TemplateDialog({ name, templates, onClose }: Props) {
  const cache = useQueryClient()
  const [form, setForm] = useState({ name, from: 'base', image: '', run: '', cpu: '', memory: '' })
  const set = (key: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const run = form.run.split('\n').map((line) => line.trim()).filter(Boolean)
  const build = useMutation({
    mutationFn: () => buildTemplate({
      name: form.name.trim(),
      ...(form.from ? { template: form.from } : { image: form.image.trim() }),
      ...(run.length > 0 && { run }),
      ...(Number(form.cpu) > 0 && { cpu: Number(form.cpu) }),
      ...(Number(form.memory) > 0 && { memory_mb: Number(form.memory) }),
    }),
    meta: { failed: 'The build did not start' },
    onSuccess: (row) => {
      cache.setQueryData<Template[]>(keys.templates, (list) => upsert(list, row))
      void cache.invalidateQueries({ queryKey: keys.templates })
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    build.mutate()
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={name ? `Build ${name} again` : 'Build a template'} about="It is ready when its last command has succeeded; sandboxes start from it at once." wide>
      <form onSubmit={submit} className="grid gap-4 sm:grid-cols-2">
        <Field label="Name" hint="Lower-case letters, digits, - and _">{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={100} pattern="[a-z0-9_\-]+" readOnly={Boolean(name)} />}</Field>
        <Field label="Start from">{(id) => (
          <Select id={id} value={form.from} onChange={set('from')}>
            {templates.filter((each) => each.status === 'ready' && each.name !== name).map((each) => <option key={each.id} value={each.name}>{each.name}</option>)}
            <option value="">An OCI image…</option>
          </Select>
        )}</Field>
        {!form.from && <div className="sm:col-span-2"><Field label="Image" hint="A reference with its registry, read over HTTPS">{(id) => <Input id={id} value={form.image} onChange={set('image')} required className="font-mono" placeholder="debian:12" />}</Field></div>}
        <div className="sm:col-span-2"><Field label="Commands" hint="One a line; they run as root, in order, inside a sandbox">{(id) => <Textarea id={id} rows={5} className="font-mono" value={form.run} onChange={set('run')} placeholder={'apt-get update\napt-get install -y golang'} />}</Field></div>
        <Field label="CPUs">{(id) => <Input id={id} type="number" min="0" max="64" value={form.cpu} onChange={set('cpu')} placeholder="default" />}</Field>
        <Field label="Memory, MB">{(id) => <Input id={id} type="number" min="0" value={form.memory} onChange={set('memory')} placeholder="default" />}</Field>
        <div className="flex justify-end gap-2 pt-2 sm:col-span-2">
          <Button look="quiet" onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={build.isPending}>Build</Button>
        </div>
      </form>
    </Dialog>
  )
}
