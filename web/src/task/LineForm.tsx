import { type FormEvent, useState } from 'react'
import type { PullRequest } from '@/api/types'
import { Button } from '@/ui/Button'
import { Textarea } from '@/ui/Field'
import { say } from '@/ui/toast'
import { usePullVerbs } from './usePullVerbs'

interface Props { pull: PullRequest; squad: string; path: string; line: number; side: 'old' | 'new'; onClose: () => void }

/** A remark on a line: kept for the record, or handed to the agent at once. */
export function LineForm({ pull, squad, path, line, side, onClose }: Props) {
  const [body, setBody] = useState('')
  const { review } = usePullVerbs(squad, pull)
  const send = (turn: boolean) => {
    if (!body.trim()) return
    review.mutate({ path, line, side, verdict: turn ? 'request_changes' : 'comment', body: body.trim(), ...(turn && { turn }) }, {
      onSuccess: () => {
        onClose()
        if (turn) say('The agent gets it as a new turn')
      },
    })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    send(true)
  }
  return (
    <form onSubmit={submit} className="border-y bg-canvas p-3 font-sans">
      <div className="max-w-3xl space-y-2">
        <Textarea ref={(node) => node?.focus()} aria-label={`Comment on line ${line} of ${path}`} rows={3} value={body} onChange={(event) => setBody(event.target.value)} placeholder="What should change here?" />
        <div className="flex justify-end gap-2">
          <Button look="quiet" size="sm" onClick={onClose}>Cancel</Button>
          <Button size="sm" disabled={!body.trim() || review.isPending} onClick={() => send(false)}>Comment only</Button>
          <Button type="submit" look="primary" size="sm" busy={review.isPending} disabled={!body.trim()}>Send to the agent</Button>
        </div>
      </div>
    </form>
  )
}
