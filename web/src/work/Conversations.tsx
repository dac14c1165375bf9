import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { MessagesSquare, Send } from 'lucide-react'
import { type FormEvent, type KeyboardEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { meQuery } from '@/api/me'
import { membersQuery, messagesQuery, sendMessage } from '@/api/squads'
import { nudgeTask } from '@/api/tasks'
import type { Execution, Member, Message, Task } from '@/api/types'
import { useMay } from '@/app/may'
import { upsert } from '@/live/reduce'
import { Avatar } from '@/ui/Avatar'
import { Badge, type Tone } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { cx } from '@/ui/cx'
import { Textarea } from '@/ui/Field'
import { Prose } from '@/ui/Prose'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { Feed } from './Feed'

interface Props { member: Member; execution: Execution | undefined; task: Task | undefined }

/** What this member and others wrote to each other, and a line to write on. */
export function Conversations({ member, execution, task }: Props) {
  const messages = useQuery(messagesQuery(member.squad_id))
  const self = `member:${member.id}`
  const may = useMay(member.squad_id, 'member')
  const shown = (messages.data ?? []).filter((m) => m.from === self || m.to === self || m.to === 'squad' || (execution && m.execution_id === execution.id))
  return (
    <div className="flex h-full flex-col">
      <div className="min-h-0 flex-1">
        {messages.isPending && <Rows what="the conversations" />}
        {messages.isError && !messages.data && <ErrorState error={messages.error} what="The conversations" retry={() => void messages.refetch()} />}
        {messages.data && shown.length === 0 && <Empty icon={<MessagesSquare aria-hidden />} title="Nobody has written yet">{may ? `Write to ${member.name} below; it is handed over at the next turn.` : 'What agents and people write to each other is shown here.'}</Empty>}
        {shown.length > 0 && <Feed items={shown} keyOf={(m) => m.id} label="Conversation" estimate={90} row={(m) => <Bubble message={m} self={self} squad={member.squad_id} />} />}
      </div>
      {may && <Composer member={member} execution={execution} task={task} />}
    </div>
  )
}

const KINDS: Partial<Record<Message['kind'], Tone>> = { question: 'warn', escalation: 'danger', review: 'review', answer: 'ok', nudge: 'info' }

function Bubble({ message, self, squad }: { message: Message; self: string; squad: string }) {
  const members = useQuery(membersQuery(squad))
  const me = useQuery(meQuery)
  const nameOf = (who: string) => {
    const [kind, id = ''] = who.split(':')
    if (kind === 'squad') return 'everyone'
    if (kind === 'user') return id === me.data?.id ? 'You' : 'A person'
    return members.data?.find((each) => each.id === id)?.name ?? (kind === 'system' ? 'Agent Squad' : 'Someone')
  }
  const own = message.from.startsWith('user:')
  const from = nameOf(message.from)
  return (
    <div className={cx('flex gap-2.5 py-2', own && 'flex-row-reverse')}>
      <Avatar id={message.from.split(':')[1] ?? message.from} name={from} size={26} hidden />
      <div className={cx('max-w-[80%] min-w-0 rounded-xl border px-3.5 py-2 text-sm', own ? 'bg-accent-soft' : 'bg-surface shadow-card')}>
        <p className="mb-1 flex flex-wrap items-center gap-2 text-xs text-muted">
          <b className="font-medium text-ink">{from}</b>
          {message.to !== self && <span>to {nameOf(message.to)}</span>}
          {KINDS[message.kind] && <Badge tone={KINDS[message.kind] ?? 'neutral'}>{message.kind}</Badge>}
          <Time at={message.created_at} />
        </p>
        <Prose text={message.body} />
      </div>
    </div>
  )
}

function Composer({ member, execution, task }: Props) {
  const [text, setText] = useState('')
  const cache = useQueryClient()
  const live = execution && !['succeeded', 'failed', 'cancelled'].includes(execution.status)
  const send = useMutation({
    mutationFn: (body: string) => (live && task ? nudgeTask(task.id, body) : sendMessage({ squad_id: member.squad_id, to: `member:${member.id}`, body, ...(task && { task_id: task.id }) })),
    meta: { failed: 'The message was not sent' },
    onSuccess: (message) => cache.setQueryData<Message[]>(keys.messages(member.squad_id), (list) => upsert(list, message)),
    onError: (_error, body) => setText((now) => now || body),
  })
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    const body = text.trim()
    if (!body) return
    setText('')
    send.mutate(body)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault()
      submit()
    }
  }
  return (
    <form onSubmit={submit} className="flex shrink-0 items-end gap-2 border-t p-3">
      <Textarea aria-label={`Write to ${member.name}`} rows={1} className="min-h-9 flex-1" value={text} onChange={(event) => setText(event.target.value)} onKeyDown={onKeyDown} placeholder={live ? `Steer ${member.name}…` : `Write to ${member.name}…`} title={live ? 'Handed over as soon as the agent listens' : undefined} />
      <Button type="submit" look="primary" className="h-9" disabled={!text.trim()} busy={send.isPending}><Send aria-hidden className="size-4" />Send</Button>
    </form>
  )
}
