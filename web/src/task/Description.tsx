import { Pencil } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { Task } from '@/api/types'
import { useMay } from '@/app/may'
import { Button } from '@/ui/Button'
import { Field, Input, Textarea } from '@/ui/Field'
import { Prose } from '@/ui/Prose'
import { useTaskVerbs } from './useTaskVerbs'

export function Description({ task }: { task: Task }) {
  const [editing, setEditing] = useState(false)
  const may = useMay(task.squad_id, 'member')
  if (editing) return <Editor task={task} onClose={() => setEditing(false)} />
  return (
    <section className="group">
      <div className="flex items-start gap-3">
        <h2 className="flex-1 text-xl font-semibold tracking-tight text-balance">{task.title}</h2>
        {may && <Button look="quiet" size="icon" aria-label="Edit title and description" onClick={() => setEditing(true)}><Pencil aria-hidden className="size-4" /></Button>}
      </div>
      <div className="mt-3">{task.description ? <Prose text={task.description} /> : <p className="text-muted">No description.</p>}</div>
    </section>
  )
}

function Editor({ task, onClose }: { task: Task; onClose: () => void }) {
  const [title, setTitle] = useState(task.title)
  const [text, setText] = useState(task.description)
  const { change } = useTaskVerbs(task)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate({ title: title.trim(), description: text }, { onSuccess: onClose })
  }
  return (
    <form onSubmit={submit} className="space-y-3">
      <Field label="Title">{(id) => <Input id={id} value={title} onChange={(e) => setTitle(e.target.value)} required maxLength={300} />}</Field>
      <Field label="Description">{(id) => <Textarea id={id} rows={14} className="font-mono" value={text} onChange={(e) => setText(e.target.value)} />}</Field>
      <div className="flex justify-end gap-2">
        <Button look="quiet" onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" busy={change.isPending}>Save</Button>
      </div>
    </form>
  )
}
