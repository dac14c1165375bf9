import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { createTask } from '@/api/tasks'
import type { Member, NewTask, Repository, Task } from '@/api/types'
import { upsert } from '@/live/reduce'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select, Textarea } from '@/ui/Field'
import { say } from '@/ui/toast'

interface Props { squad: string; status: 'backlog' | 'todo'; members: Member[]; repositories: Repository[]; tasks: Task[]; onClose: () => void }

export function NewTaskDialog({ squad, status, members, repositories, tasks, onClose }: Props) {
  const cache = useQueryClient()
  const [form, setForm] = useState({ title: '', description: '', repository: repositories[0]?.id ?? '', assignee: '', priority: '1', labels: '', after: '', budget: '' })
  const set = (key: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const add = useMutation({
    mutationFn: (run: boolean) => createTask(bodyOf(squad, status, form, run)),
    meta: { failed: 'The task was not added' },
    onSuccess: (task, run) => {
      cache.setQueryData<Task[]>(keys.tasks(squad), (list) => upsert(list, task, () => false))
      say(run ? `#${task.number} starts` : `#${task.number} was added`)
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate(false)
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="New task" wide>
      <form onSubmit={submit} className="space-y-4">
        <Field label="Title">{(id) => <Input id={id} value={form.title} onChange={set('title')} required maxLength={300} placeholder="What should be different afterwards?" />}</Field>
        <Field label="Description" hint="Markdown. What the agent needs to know: where, why, and how to tell that it is done.">
          {(id) => <Textarea id={id} rows={7} value={form.description} onChange={set('description')} />}
        </Field>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Repository">{(id) => <Select id={id} value={form.repository} onChange={set('repository')}><option value="">None</option>{repositories.map((r) => <option key={r.id} value={r.id}>{r.name}</option>)}</Select>}</Field>
          <Field label="Member">{(id) => <Select id={id} value={form.assignee} onChange={set('assignee')}><option value="">Whoever is free</option>{members.filter((m) => m.is_active).map((m) => <option key={m.id} value={m.id}>{m.name}</option>)}</Select>}</Field>
          <Field label="Priority">{(id) => <Select id={id} value={form.priority} onChange={set('priority')}><option value="0">Low</option><option value="1">Normal</option><option value="2">High</option><option value="3">Urgent</option></Select>}</Field>
          <Field label="Labels" hint="Separated by commas">{(id) => <Input id={id} value={form.labels} onChange={set('labels')} />}</Field>
          <Field label="Waits for">{(id) => <Select id={id} value={form.after} onChange={set('after')}><option value="">Nothing</option>{tasks.filter((t) => t.status !== 'done').map((t) => <option key={t.id} value={t.id}>#{t.number} {t.title}</option>)}</Select>}</Field>
          <Field label="Budget" hint="US dollars; empty means the squad’s">{(id) => <Input id={id} type="number" min="0" step="0.01" value={form.budget} onChange={set('budget')} />}</Field>
        </div>
        <div className="flex justify-end gap-2 pt-2">
          <Button look="quiet" onClick={onClose}>Cancel</Button>
          <Button disabled={!form.title.trim()} busy={add.isPending && add.variables} onClick={() => add.mutate(true)}>Add and start</Button>
          <Button type="submit" look="primary" disabled={!form.title.trim()} busy={add.isPending && !add.variables}>Add task</Button>
        </div>
      </form>
    </Dialog>
  )
}

type Form = Record<'title' | 'description' | 'repository' | 'assignee' | 'priority' | 'labels' | 'after' | 'budget', string>

function bodyOf(squad: string, status: 'backlog' | 'todo', form: Form, run: boolean): NewTask {
  const labels = form.labels.split(',').map((label) => label.trim()).filter(Boolean)
  return {
    squad_id: squad,
    status,
    title: form.title.trim(),
    priority: Number(form.priority),
    ...(form.description.trim() && { description: form.description }),
    ...(form.repository && { repository_id: form.repository }),
    ...(form.assignee && { assignee_id: form.assignee }),
    ...(labels.length > 0 && { labels }),
    ...(form.after && { depends_on: [form.after] }),
    ...(Number(form.budget) > 0 && { budget: { task_usd: Number(form.budget) } }),
    ...(run && { run }),
  }
}
