import { ChevronDown, FileDiff as Icon, MessageSquare } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import type { FileDiff, PullRequest, ReviewComment } from '@/api/types'
import { Badge, type Tone } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { cx } from '@/ui/cx'
import { Rows } from '@/ui/States'

const DiffBody = lazy(() => import('./DiffBody'))

const TONES: Record<FileDiff['status'], Tone> = { added: 'ok', modified: 'neutral', deleted: 'danger', renamed: 'info', copied: 'info' }
/** Files above this many changed lines open on request. */
const LARGE = 600

interface Props { file: FileDiff; mode: 'split' | 'inline'; comments: ReviewComment[]; pull?: PullRequest | undefined; squad: string }

export function FileChange({ file, mode, comments, pull, squad }: Props) {
  const size = file.additions + file.deletions
  const [open, setOpen] = useState(size <= LARGE)
  return (
    <section aria-label={file.path} className="rounded-lg border bg-surface shadow-card">
      <header className={cx('sticky top-0 z-10 flex items-center gap-2 rounded-t-lg bg-surface px-2 py-1.5', open && 'border-b', !open && 'rounded-b-lg')}>
        <Button look="quiet" size="icon" aria-expanded={open} aria-label={open ? `Fold ${file.path}` : `Unfold ${file.path}`} onClick={() => setOpen(!open)}><ChevronDown aria-hidden className={cx('size-4 transition-transform', !open && '-rotate-90')} /></Button>
        <Icon aria-hidden className="size-4 shrink-0 text-faint" />
        <h3 className="min-w-0 flex-1 truncate font-mono text-xs" title={file.path}>{file.old_path && file.old_path !== file.path && <span className="text-faint">{file.old_path} → </span>}{file.path}</h3>
        {comments.length > 0 && <span className="flex items-center gap-1 text-xs text-muted"><MessageSquare aria-hidden className="size-3.5" />{comments.length}</span>}
        {file.status !== 'modified' && <Badge tone={TONES[file.status]}>{file.status}</Badge>}
        <span className="tabular pr-2 text-xs"><span className="text-ok">+{file.additions}</span> <span className="text-danger">−{file.deletions}</span></span>
      </header>
      {open && (
        file.binary || !file.patch
          ? <p className="p-4 text-center text-sm text-muted">{file.binary ? 'A binary file; it cannot be shown as text.' : 'Too large, or only its name or mode changed.'}</p>
          : <Suspense fallback={<Rows n={3} what="the diff" />}><DiffBody file={file} mode={mode} comments={comments} pull={pull} squad={squad} /></Suspense>
      )}
      {!open && size > LARGE && <p className="px-4 pb-3 text-sm text-muted">{size} changed lines, folded. <button type="button" className="text-accent underline" onClick={() => setOpen(true)}>Show them</button></p>}
    </section>
  )
}
