import { DiffModeEnum, DiffView, SplitSide } from '@git-diff-view/react'
import '@git-diff-view/react/styles/diff-view-pure.css'
import { useMemo, useSyncExternalStore } from 'react'
import type { FileDiff, PullRequest, ReviewComment } from '@/api/types'
import { useMay } from '@/app/may'
import { resolved, subscribeTheme } from '@/app/theme'
import './diff.css'
import { langOf } from './language'
import { LineComments } from './LineComments'
import { LineForm } from './LineForm'

interface Props { file: FileDiff; mode: 'split' | 'inline'; comments: ReviewComment[]; pull?: PullRequest | undefined; squad: string }

export default function DiffBody({ file, mode, comments, pull, squad }: Props) {
  const theme = useSyncExternalStore(subscribeTheme, resolved)
  const may = useMay(squad, 'member')
  const data = useMemo(() => {
    const old = file.old_path ?? file.path
    const lang = langOf(file.path)
    return {
      oldFile: { fileName: old, fileLang: lang },
      newFile: { fileName: file.path, fileLang: lang },
      hunks: [`--- a/${old}\n+++ b/${file.path}\n${file.patch ?? ''}`],
    }
  }, [file])
  const extend = useMemo(() => threads(comments), [comments])
  return (
    <div className="squad-diff overflow-x-auto rounded-b-lg">
      <DiffView<ReviewComment[]>
        data={data}
        extendData={extend}
        diffViewMode={mode === 'split' ? DiffModeEnum.Split : DiffModeEnum.Unified}
        diffViewTheme={theme}
        diffViewFontSize={12}
        diffViewHighlight
        diffViewWrap
        diffViewAddWidget={may && pull?.state === 'open'}
        renderWidgetLine={({ side, lineNumber, onClose }) => (pull ? <LineForm pull={pull} squad={squad} path={file.path} line={lineNumber} side={side === SplitSide.old ? 'old' : 'new'} onClose={onClose} /> : null)}
        renderExtendLine={({ data: thread }) => <LineComments comments={thread} />}
      />
    </div>
  )
}

function threads(comments: ReviewComment[]) {
  const sides: Record<'oldFile' | 'newFile', Record<string, { data: ReviewComment[] }>> = { oldFile: {}, newFile: {} }
  for (const comment of comments) {
    if (!comment.line) continue
    const side = sides[comment.side === 'old' ? 'oldFile' : 'newFile']
    side[comment.line] = { data: [...(side[comment.line]?.data ?? []), comment] }
  }
  return sides
}
