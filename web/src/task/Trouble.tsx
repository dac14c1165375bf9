import { TriangleAlert } from 'lucide-react'
import type { Task, TaskStatus } from '@/api/types'
import type { Tone } from '@/ui/Badge'
import { cx } from '@/ui/cx'

export const STATUS_TONES: Record<TaskStatus, Tone> = { backlog: 'neutral', todo: 'info', in_progress: 'warn', in_review: 'review', done: 'ok' }

const NAMES = { blocked: 'Blocked', failed: 'Failed', cancelled: 'Cancelled' }

/** Why a task does not move. */
export function Trouble({ task }: { task: Task }) {
  if (!task.flag) return null
  return (
    <div role="status" className={cx('flex gap-3 rounded-lg p-3 text-sm', task.flag === 'failed' ? 'bg-danger-soft text-danger' : 'bg-warn-soft text-warn')}>
      <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
      <p className="break-words"><b className="font-semibold">{NAMES[task.flag]}.</b> {task.cause}</p>
    </div>
  )
}
