import type { Execution, Message } from '@/api/types'

/** The newest question of a run that waits for a person and got no answer since. */
export function openQuestion(messages: Message[], execution: Execution | undefined): Message | undefined {
  if (!execution || !asksPerson(execution)) return undefined
  const asked = messages.findLast((message) => message.kind === 'question' && message.execution_id === execution.id)
  if (!asked) return undefined
  const answered = messages.some((message) => message.from.startsWith('user:') && (message.execution_id === execution.id || message.task_id === execution.task_id) && message.created_at > asked.created_at)
  return answered ? undefined : asked
}

export const asksPerson = (execution: Execution) => execution.liveness?.state === 'person' && (execution.status === 'waiting' || execution.status === 'running')
