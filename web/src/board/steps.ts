// What a card says about the run behind it.
import type { Execution, Sandbox, Step } from '@/api/types'
import type { Pulse } from '@/ui/Avatar'

export const STEPS: { step: Step; name: string }[] = [
  { step: 'sandbox', name: 'sandbox' },
  { step: 'clone', name: 'clone' },
  { step: 'branch', name: 'branch' },
  { step: 'agent', name: 'agent' },
  { step: 'commit', name: 'commit' },
  { step: 'push', name: 'push' },
  { step: 'pull_request', name: 'PR' },
]

/** Index of the step that runs now; past the last once the pull request stands. */
export function stepIndex(step: string | undefined): number {
  if (!step) return 0
  const at = STEPS.findIndex((each) => each.step === step)
  return at < 0 ? STEPS.length : at
}

const LIVE: Record<string, string> = {
  working: 'working',
  command: 'runs a command',
  model: 'thinking',
  person: 'waits for you',
  rate_limited: 'rate limited',
  looping: 'going in circles',
  silent: 'silent',
  sandbox_lost: 'sandbox lost',
  review: 'waits for review',
  quota: 'waits for quota',
}

export function livenessWords(execution: Execution): string {
  if (execution.status === 'queued') return 'queued'
  const { state, detail } = execution.liveness ?? {}
  if (state === 'command' && detail) return detail
  if (state && LIVE[state]) return LIVE[state]
  const at = stepIndex(execution.step)
  const name = STEPS[at]?.name ?? execution.step ?? 'working'
  return execution.percent ? `${name} ${execution.percent}%` : name
}

const TROUBLE = new Set(['looping', 'silent', 'sandbox_lost', 'rate_limited'])
const WAITING = new Set(['person', 'review', 'quota'])

export function pulseOf(execution: Execution | undefined): Pulse {
  if (!execution) return undefined
  const state = execution.liveness?.state ?? ''
  if (execution.status === 'failed' || TROUBLE.has(state)) return 'trouble'
  if (execution.status === 'queued' || execution.status === 'waiting' || WAITING.has(state)) return 'waiting'
  return execution.status === 'running' ? 'working' : 'idle'
}

export const SANDBOX_WORDS: Record<Sandbox['status'], string> = {
  created: 'being made', running: 'running', paused: 'paused', terminated: 'gone', error: 'lost',
}
