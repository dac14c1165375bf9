import { type FormEvent, useState } from 'react'
import type { PullRequest, ReviewComment } from '@/api/types'
import { useMay } from '@/app/may'
import { Button } from '@/ui/Button'
import { Field, Textarea } from '@/ui/Field'
import { LineComments } from './LineComments'
import { usePullVerbs } from './usePullVerbs'

/** What was said about the whole, and a place to say more. */
export function Remarks({ pull, squad, comments }: { pull: PullRequest; squad: string; comments: ReviewComment[] }) {
  const [body, setBody] = useState('')
  const may = useMay(squad, 'member')
  const { review } = usePullVerbs(squad, pull)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    review.mutate({ verdict: 'request_changes', body: body.trim(), turn: true }, { onSuccess: () => setBody('') })
  }
  if (!may && comments.length === 0) return null
  return (
    <section aria-label="Review" className="overflow-hidden rounded-lg border bg-surface shadow-card">
      <h3 className="px-4 py-3 font-medium">Review</h3>
      {comments.length > 0 && <LineComments comments={comments} />}
      {may && pull.state === 'open' && (
        <form onSubmit={submit} className="space-y-3 p-4 pt-1">
          <Field label="About the whole">{(id) => <Textarea id={id} rows={3} value={body} onChange={(event) => setBody(event.target.value)} placeholder="Ask for changes; the agent continues in the same sandbox." />}</Field>
          <Button type="submit" busy={review.isPending} disabled={!body.trim()}>Ask for changes</Button>
        </form>
      )}
    </section>
  )
}
