import { useMutation, useQueryClient } from '@tanstack/react-query'
import { CornerDownLeft, Plus } from 'lucide-react'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { keys } from '@/api/keys'
import { createTask } from '@/api/tasks'
import type { Repository, Task } from '@/api/types'
import { upsert } from '@/live/reduce'
import { say } from '@/ui/toast'

const KEYS = typeof matchMedia === 'function' && matchMedia('(hover: hover)').matches

/** One line at the foot of the board: type, press Enter, the task is in Todo. Key: N. */
export function QuickAdd({ squad, repositories }: { squad: string; repositories: Repository[] }) {
  const [title, setTitle] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const cache = useQueryClient()
  const add = useMutation({
    mutationFn: (text: string) => createTask({ squad_id: squad, title: text, status: 'todo', ...(repositories.length === 1 && repositories[0] && { repository_id: repositories[0].id }) }),
    meta: { failed: 'The task was not added' },
    onSuccess: (task) => {
      cache.setQueryData<Task[]>(keys.tasks(squad), (list) => upsert(list, task, () => false))
      say(`#${task.number} is in Todo`)
    },
    onError: (_error, text) => setTitle((now) => now || text),
  })
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.closest('input,textarea,select,[contenteditable],[role=dialog]')
      if (event.key !== 'n' || event.ctrlKey || event.metaKey || event.altKey || typing) return
      event.preventDefault()
      input.current?.focus()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const text = title.trim()
    if (!text) return
    setTitle('')
    add.mutate(text)
  }
  return (
    <form onSubmit={submit} className="flex shrink-0 items-center gap-2 border-t px-4 py-2">
      <Plus aria-hidden className="size-4 text-faint" />
      <input
        ref={input} aria-label="Quick add a task" placeholder={KEYS ? 'Add a task… (press N)' : 'Add a task…'} value={title} onChange={(event) => setTitle(event.target.value)} maxLength={300}
        className="h-8 min-w-0 flex-1 bg-transparent text-sm outline-none"
      />
      {title && <span className="flex items-center gap-1 text-xs text-faint"><CornerDownLeft aria-hidden className="size-3.5" />Enter</span>}
    </form>
  )
}
