import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { Task } from '@/api/types'
import { Field, Input, Select } from '@/ui/Field'
import { BUDGET_FIELD } from './Trouble'

/** Saved when the field is left or Enter is pressed, and only when it changed. */
export function Labels({ labels, onChange }: { labels: string[]; onChange: (labels: string[]) => void }) {
  const was = labels.join(', ')
  const [text, setText] = useState(was)
  const save = (event?: FormEvent) => {
    event?.preventDefault()
    const next = [...new Set(text.split(',').map((label) => label.trim()).filter(Boolean))]
    if (next.join(', ') !== was) onChange(next)
  }
  return (
    <form onSubmit={save}>
      <Field label="Labels">{(id) => <Input id={id} value={text} onChange={(event) => setText(event.target.value)} onBlur={() => save()} placeholder="none" />}</Field>
    </form>
  )
}

export function Budget({ amount, onChange }: { amount: number | undefined; onChange: (amount: number) => void }) {
  const [text, setText] = useState(amount ? String(amount) : '')
  const save = (event?: FormEvent) => {
    event?.preventDefault()
    if (Number(text) !== (amount ?? 0) && Number(text) >= 0) onChange(Number(text))
  }
  return (
    <form onSubmit={save} id={BUDGET_FIELD}>
      <Field label="Budget, US dollars">{(id) => <Input id={id} type="number" min="0" step="0.01" value={text} onChange={(event) => setText(event.target.value)} onBlur={() => save()} placeholder="the squad’s" />}</Field>
    </form>
  )
}

interface Props { task: Task; before: Task[]; tasks: Task[]; onChange: (ids: string[]) => void }

/** What must be done first. */
export function Dependencies({ task, before, tasks, onChange }: Props) {
  const ids = before.map((each) => each.id)
  const others = tasks.filter((each) => each.id !== task.id && each.status !== 'done' && !ids.includes(each.id))
  return (
    <div>
      {before.length > 0 && (
        <ul aria-label="Waits for" className="mb-2 space-y-1">
          {before.map((each) => (
            <li key={each.id} className="flex items-start gap-1">
              <Link to="/squads/$squadId/tasks/$number" params={{ squadId: task.squad_id, number: String(each.number) }} className={each.status === 'done' ? 'flex-1 text-faint line-through' : 'flex-1 hover:underline'}>#{each.number} {each.title}</Link>
              <button type="button" aria-label={`Do not wait for #${each.number}`} className="rounded p-0.5 text-faint hover:text-ink" onClick={() => onChange(ids.filter((id) => id !== each.id))}><X aria-hidden className="size-3.5" /></button>
            </li>
          ))}
        </ul>
      )}
      <Field label="Waits for">
        {(id) => (
          <Select id={id} value="" onChange={(event) => event.target.value && onChange([...ids, event.target.value])}>
            <option value="">{before.length > 0 ? 'Add another…' : 'Nothing'}</option>
            {others.map((each) => <option key={each.id} value={each.id}>#{each.number} {each.title}</option>)}
          </Select>
        )}
      </Field>
    </div>
  )
}
