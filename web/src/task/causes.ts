// Why a task does not move, in words, and what a person can do about it.
import type { Execution, Task } from '@/api/types'

export type Remedy = 'budget' | 'member-budget' | 'squad-budget' | 'retry' | 'answer' | 'review' | 'repository' | 'credentials' | 'system' | 'sandboxes' | 'wait'

export interface Cause {
  tone: 'danger' | 'warn' | 'info'
  title: string
  /** The exact words of the server, where they add something. */
  detail?: string
  advice: string
  remedies: Remedy[]
}

const BUDGET = /budget of the (.+?) does not allow/i
const MARK = /^budget_reached: /

/** An error of the server without the mark that machines read. */
export const plain = (error: string) => error.replace(MARK, '')

/** Undefined while all is well. */
export function causeOf(task: Task, execution: Execution | undefined): Cause | undefined {
  if (task.flag === 'cancelled') return { tone: 'info', title: 'Cancelled', ...detailOf(task), advice: 'What was committed is on its branch. Try again to go on from there.', remedies: ['retry'] }
  if (task.flag === 'blocked') return { tone: 'warn', title: 'Blocked', ...detailOf(task), advice: 'It starts by itself as soon as what it waits for is done.', remedies: ['wait'] }
  if (task.flag === 'failed') return failure(task, execution)
  if (!execution || task.status !== 'in_progress') return undefined
  return waiting(execution)
}

const detailOf = (task: Task) => (task.cause ? { detail: plain(task.cause) } : {})

function failure(task: Task, execution: Execution | undefined): Cause {
  const detail = detailOf(task)
  const words = task.cause ?? ''
  const budget = BUDGET.exec(words)
  if (budget) {
    const scope = budget[1] ?? ''
    const where = scope.startsWith('task') ? 'budget' : scope.startsWith('member') ? 'member-budget' : 'squad-budget'
    return { tone: 'danger', title: scope === 'task' ? 'The budget of this task is spent' : `The budget of the ${scope} is spent`, ...detail, advice: 'Raise it, then try again; the agent goes on from its last checkpoint.', remedies: [where, 'retry'] }
  }
  if (MARK.test(words)) return { tone: 'danger', title: 'A budget is spent', ...detail, advice: 'Raise that of the task, or the squad’s, then try again; the agent goes on from its last checkpoint.', remedies: ['budget', 'squad-budget', 'retry'] }
  switch (execution?.error_code) {
    case 'quota_exceeded': return { tone: 'danger', title: 'A limit was reached', ...detail, advice: 'Free a sandbox or raise the limit, then try again.', remedies: ['sandboxes', 'retry'] }
    case 'provider': return { tone: 'danger', title: 'The sandbox, the forge or the model failed', ...detail, advice: 'This often passes. Try again; if it stays, the doctor can tell which of them it is.', remedies: ['retry', 'system'] }
    case 'unavailable': return { tone: 'danger', title: 'Something it needs is not there', ...detail, advice: 'The doctor says what is missing and how to get it.', remedies: ['system', 'retry'] }
    case 'timeout': return { tone: 'danger', title: 'It took too long', ...detail, advice: 'Give the member a longer run or the task a smaller aim, then try again.', remedies: ['retry'] }
    case 'unauthorized':
    case 'forbidden': return { tone: 'danger', title: 'A credential was refused', ...detail, advice: 'Replace it or give it the missing rights, then try again.', remedies: ['credentials', 'retry'] }
    case 'not_found':
    case 'invalid': return { tone: 'danger', title: 'Its settings do not fit', ...detail, advice: 'Check the repository and the member, then try again.', remedies: ['repository', 'retry'] }
    case 'rule_broken': return { tone: 'danger', title: /exit code/.test(words) ? 'The agent gave up' : 'A rule refused it', ...detail, advice: 'The terminal tells more. Write to the agent what to do differently, or try again from the last checkpoint.', remedies: ['retry', 'answer'] }
    default: return { tone: 'danger', title: 'Failed', ...detail, advice: 'The log and the steps below tell where. Try again to go on from the last checkpoint.', remedies: ['retry'] }
  }
}

function waiting(execution: Execution): Cause | undefined {
  const detail = execution.liveness?.detail ? { detail: execution.liveness.detail } : {}
  switch (execution.liveness?.state) {
    case 'quota': return { tone: 'warn', title: 'Waits for a free sandbox', ...detail, advice: 'It starts by itself when one is free. Destroy one that nobody needs to make room now.', remedies: ['sandboxes'] }
    case 'rate_limited': return { tone: 'warn', title: 'The model’s provider slows it down', ...detail, advice: 'It goes on by itself.', remedies: ['wait'] }
    case 'looping': return { tone: 'warn', title: 'It goes in circles', ...detail, advice: 'Write to the agent what to try instead, or cancel it.', remedies: ['answer'] }
    case 'silent': return { tone: 'warn', title: 'It has been silent for a while', ...detail, advice: 'Look at the terminal; a word from you may wake it.', remedies: ['answer'] }
    case 'sandbox_lost': return { tone: 'warn', title: 'Its sandbox was lost', advice: 'It goes on in a new one, from the last checkpoint.', remedies: ['wait'] }
    default: return undefined
  }
}

/** A reached budget, as the activity shows it. */
export function budgetWords(reached: { scope: string; limit_usd: number; spent_usd: number }, usd: (amount: number) => string): string {
  const spent = reached.limit_usd > 0 ? `: ${usd(reached.spent_usd)} of ${usd(reached.limit_usd)}` : ''
  const where = reached.scope === 'task' ? 'on the task’s page' : 'in the squad’s budget'
  return `The budget of the ${reached.scope} is spent${spent}. Further model calls are refused until it is raised ${where}.`
}
