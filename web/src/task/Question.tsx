import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { MessageCircleQuestion } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { membersQuery, messagesQuery } from '@/api/squads'
import { nudgeTask } from '@/api/tasks'
import type { Execution, Message, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { upsert } from '@/live/reduce'
import { Button } from '@/ui/Button'
import { Textarea } from '@/ui/Field'
import { Prose } from '@/ui/Prose'
import { Time } from '@/ui/Time'
import { say } from '@/ui/toast'
import { openQuestion } from './question'

/** What an agent asked and waits for; the answer goes to it as its next turn. */
export function Question({ task, execution }: { task: Task; execution: Execution | undefined }) {
  const messages = useQuery(messagesQuery(task.squad_id))
  const members = useQuery(membersQuery(task.squad_id))
  const cache = useQueryClient()
  const [text, setText] = useState('')
  const may = useMay(task.squad_id, 'member')
  const answer = useMutation({
    mutationFn: (body: string) => nudgeTask(task.id, body),
    meta: { failed: 'The answer was not sent' },
    onSuccess: (message) => {
      cache.setQueryData<Message[]>(keys.messages(task.squad_id), (list) => upsert(list, message))
      setText('')
      say('The agent goes on with your answer')
    },
  })
  const question = openQuestion(messages.data ?? [], execution)
  if (!question) return null
  const name = members.data?.find((member) => `member:${member.id}` === question.from)?.name ?? 'The agent'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (text.trim()) answer.mutate(text.trim())
  }
  return (
    <section aria-label={`${name} asks`} className="rounded-lg border border-warn/30 bg-warn-soft p-4 text-sm">
      <p className="flex items-center gap-2 font-semibold text-warn"><MessageCircleQuestion aria-hidden className="size-4" />{name} asks and waits for {may ? 'you' : 'an answer'}<span className="ml-auto text-xs font-normal text-muted"><Time at={question.created_at} /></span></p>
      <div className="mt-1.5 text-ink"><Prose text={question.body} /></div>
      {may && <form onSubmit={submit} className="mt-3 flex items-end gap-2">
        <Textarea aria-label={`Answer ${name}`} rows={2} value={text} onChange={(event) => setText(event.target.value)} placeholder="Your answer…" />
        <Button type="submit" look="primary" disabled={!text.trim()} busy={answer.isPending}>Answer</Button>
      </form>}
    </section>
  )
}
