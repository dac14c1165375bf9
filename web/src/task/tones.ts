import type { ExecutionStatus, TaskStatus } from '@/api/types'
import type { Tone } from '@/ui/Badge'

export const STATUS_TONES: Record<TaskStatus, Tone> = { backlog: 'neutral', todo: 'info', in_progress: 'warn', in_review: 'review', done: 'ok' }
export const EXECUTION_TONES: Record<ExecutionStatus, Tone> = { queued: 'neutral', running: 'warn', waiting: 'review', succeeded: 'ok', failed: 'danger', cancelled: 'neutral' }
