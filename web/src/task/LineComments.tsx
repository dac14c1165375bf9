import type { ReviewComment } from '@/api/types'
import { Avatar } from '@/ui/Avatar'
import { Badge } from '@/ui/Badge'
import { Prose } from '@/ui/Prose'
import { Time } from '@/ui/Time'

export function LineComments({ comments }: { comments: ReviewComment[] }) {
  return (
    <ul className="space-y-2 border-y bg-canvas p-3 font-sans text-sm">
      {comments.map((comment) => (
        <li key={comment.id} className="max-w-3xl rounded-lg border bg-surface p-3">
          <p className="mb-1.5 flex items-center gap-2 text-xs text-muted">
            <Avatar id={comment.author} name={comment.author} hidden />
            <b className="font-medium text-ink">{comment.author}</b>
            {comment.verdict === 'approve' && <Badge tone="ok">approved</Badge>}
            {comment.verdict === 'request_changes' && <Badge tone="warn">asks for changes</Badge>}
            <Time at={comment.created_at} />
          </p>
          {comment.body && <Prose text={comment.body} />}
        </li>
      ))}
    </ul>
  )
}
