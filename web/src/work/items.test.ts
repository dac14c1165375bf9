import { describe, expect, test } from 'vitest'
import { eventOf } from '@/test/make'
import { workOf } from './items'

describe('the work of an execution', () => {
  test('a tool call is one line that changes as it goes', () => {
    const { items } = workOf([
      eventOf(1, 'tool_call', { id: 'c', title: 'go test', kind: 'execute', status: 'running' }),
      eventOf(2, 'message', { id: 'm', text: 'Waiting. ' }),
      eventOf(3, 'tool_call', { id: 'c', title: 'go test', kind: 'execute', status: 'completed', exit_code: 0 }),
    ])
    expect(items).toHaveLength(2)
    expect(items[0]).toMatchObject({ kind: 'tool', call: { status: 'completed', exit_code: 0 } })
  })

  test('pieces of one message are joined, messages without a name are not', () => {
    const { items, thoughts } = workOf([
      eventOf(1, 'message', { id: 'm', text: 'Hel' }), eventOf(2, 'message', { id: 'm', text: 'lo' }),
      eventOf(3, 'message', { text: 'one' }), eventOf(4, 'message', { text: 'two' }),
      eventOf(5, 'thought', { id: 't', text: 'a' }), eventOf(6, 'thought', { id: 't', text: 'b' }), eventOf(7, 'thought', { id: 'u', text: 'c' }),
    ])
    expect(items.map((item) => (item.kind === 'message' ? item.text : ''))).toEqual(['Hello', 'one', 'two'])
    expect(thoughts.map((thought) => thought.text)).toEqual(['ab', 'c'])
  })

  test('a step of a second turn is a new line, with a key of its own', () => {
    const { items } = workOf([
      eventOf(1, 'step', { step: 'agent', status: 'running' }), eventOf(2, 'step', { step: 'agent', status: 'succeeded' }), eventOf(3, 'step', { step: 'agent', status: 'running' }),
    ])
    expect(items.map((item) => (item.kind === 'step' ? item.step.status : ''))).toEqual(['succeeded', 'running'])
    expect(new Set(items.map((item) => item.key)).size).toBe(2)
  })

  test('the newest plan counts', () => {
    const { plan } = workOf([eventOf(1, 'plan', { entries: [{ text: 'a', status: 'pending' }] }), eventOf(2, 'plan', { entries: [{ text: 'b', status: 'completed' }] })])
    expect(plan?.entries[0]?.text).toBe('b')
  })

  test('refusals of the gateway are told', () => {
    const { items } = workOf([eventOf(1, 'egress_refused', { host: 'evil.example', rule: 'not on the list' })])
    expect(items[0]).toMatchObject({ kind: 'notice', text: 'evil.example was refused by not on the list' })
  })
})
