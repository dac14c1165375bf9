// Rows for tests, with what a test does not care about filled in.
import type { Execution, Member, SquadEvent, Task } from '@/api/types'

const AT = '2026-11-15T03:00:00Z'

export function aTask(change: Partial<Task> = {}): Task {
  return { id: 't', number: 1, squad_id: 'squad', title: 'A task', description: '', status: 'todo', priority: 1, cost_usd: 0, position: 1, version: 1, created_at: AT, updated_at: AT, ...change }
}

export function anExecution(change: Partial<Execution> = {}): Execution {
  return { id: 'e', task_id: 't', squad_id: 'squad', status: 'running', attempt: 1, turn: 1, tokens_in: 0, tokens_out: 0, tokens_cached: 0, model_cost_usd: 0, sandbox_cost_usd: 0, created_at: AT, ...change }
}

export function aMember(change: Partial<Member> = {}): Member {
  return { id: 'm', squad_id: 'squad', name: 'Ada', role: 'developer', specialization: '', llm_provider: '', llm_model: '', system_prompt: '', config: {}, is_active: true, created_at: AT, updated_at: AT, ...change }
}

// The kinds of an event may be several under one payload, so Extract alone finds none.
type PayloadOf<T extends SquadEvent['type'], E = SquadEvent> = E extends { type: infer U; payload: infer P } ? (T extends U ? P : never) : never

export function eventOf<T extends SquadEvent['type']>(seq: number, type: T, payload: PayloadOf<T>, more: Partial<Pick<SquadEvent, 'task_id' | 'execution_id' | 'member_id'>> = {}): SquadEvent {
  return { seq, type, at: AT, squad_id: 'squad', payload, ...more } as SquadEvent
}

/** A promise that the test fulfils when it wants. */
export function gate<T>() {
  let open: (value: T) => void = () => undefined
  const promise = new Promise<T>((resolve) => { open = resolve })
  return { promise, open }
}
