// Turns an execution's events into what its page shows. Everything here is pure:
// the same events give the same page, live, after a reload and after the run.
import { usd } from '@/format/number'
import { budgetWords } from '@/task/causes'
import type { GitProgress, Plan, SquadEvent, StepProgress, ToolCall } from '@/api/types'

export type Item =
  | { kind: 'tool'; key: string; at: string; call: ToolCall }
  | { kind: 'message' | 'question'; key: string; at: string; text: string }
  | { kind: 'step'; key: string; at: string; step: StepProgress }
  | { kind: 'git'; key: string; at: string; git: GitProgress }
  | { kind: 'notice'; key: string; at: string; text: string }

export interface Thought { key: string; at: string; text: string }
export interface Work { items: Item[]; thoughts: Thought[]; plan: Plan | undefined }

export function workOf(events: SquadEvent[]): Work {
  const items: Item[] = []
  const thoughts: Thought[] = []
  const places = new Map<string, number>()
  let plan: Plan | undefined
  const put = (key: string, item: Item) => {
    const at = places.get(key)
    const old = at === undefined ? undefined : items[at]
    if (at === undefined || !old) {
      places.set(key, items.length)
      items.push(item)
    } else {
      items[at] = { ...item, at: old.at }
    }
  }
  for (const event of events) {
    const { at, seq } = event
    switch (event.type) {
      case 'tool_call':
        put(`tool:${event.payload.id}`, { kind: 'tool', key: `tool:${event.payload.id}`, at, call: event.payload })
        break
      case 'message':
      case 'question': {
        const key = `${event.type}:${event.payload.id ?? seq}`
        const place = places.get(key)
        const old = place === undefined ? undefined : items[place]
        const before = old && (old.kind === 'message' || old.kind === 'question') ? old.text : ''
        put(key, { kind: event.type, key, at, text: before + event.payload.text })
        break
      }
      case 'thought':
        joinThought(thoughts, event.payload.id ?? '', seq, at, event.payload.text)
        break
      case 'plan':
        plan = event.payload
        break
      case 'step': {
        const key = stepKey(items, places, event.payload, seq)
        put(key, { kind: 'step', key, at, step: event.payload })
        break
      }
      case 'git_operation':
        put(`git:${event.payload.id}`, { kind: 'git', key: `git:${event.payload.id}`, at, git: event.payload })
        break
      case 'egress_refused':
        items.push({ kind: 'notice', key: `n${seq}`, at, text: `${event.payload.host} was refused by ${event.payload.rule}` })
        break
      case 'budget_reached':
        items.push({ kind: 'notice', key: `n${seq}`, at, text: budgetWords(event.payload, usd) })
        break
      case 'review_received':
        items.push({ kind: 'notice', key: `n${seq}`, at, text: `${event.payload.author} wrote: ${event.payload.body || event.payload.verdict}` })
        break
      default:
    }
  }
  return { items, thoughts, plan }
}

function joinThought(thoughts: Thought[], id: string, seq: number, at: string, text: string) {
  const last = thoughts.at(-1)
  if (last && id && last.key === id) thoughts[thoughts.length - 1] = { ...last, text: last.text + text }
  else thoughts.push({ key: id && !thoughts.some((each) => each.key === id) ? id : `t${seq}`, at, text })
}

// A step that ended and begins again (a second turn) is a new line.
function stepKey(items: Item[], places: Map<string, number>, step: StepProgress, seq: number): string {
  const key = `step:${step.step}`
  const place = places.get(key)
  const old = place === undefined ? undefined : items[place]
  const ended = old?.kind === 'step' && (old.step.status === 'succeeded' || old.step.status === 'failed')
  if (ended) {
    places.delete(key)
    items[place ?? 0] = { ...old, key: `${key}:${seq}` }
  }
  return key
}
