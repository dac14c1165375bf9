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

const TITLES = ['Sandbox', 'Clone', 'Branch', 'Agent', 'Commit', 'Push', 'Pull request']

/** The step that runs now, as a heading. */
export function stepName(execution: Execution): string {
  if (execution.status === 'queued') return 'Queued'
  return TITLES[stepIndex(execution.step)] ?? 'Review'
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

/** What the agent does within its step, or what it waits for in the queue; empty where the step says it all. */
export function doing(execution: Execution): string {
  const { state, detail } = execution.liveness ?? {}
  if (execution.status === 'queued') return detail ?? ''
  return state === 'command' && detail ? detail : (LIVE[state ?? ''] ?? '')
}

export function livenessWords(execution: Execution): string {
  const words = doing(execution)
  if (words) return words
  if (execution.status === 'queued') return 'queued'
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
