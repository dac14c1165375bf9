import { expect, test } from 'vitest'
import { Hub, type ToTab } from './hub'
import type { Listener } from './line'

function hubWithLines() {
  const lines: { on: Listener; closed: boolean }[] = []
  const hub = new Hub((on) => {
    const line = { on, closed: false }
    lines.push(line)
    return () => { line.closed = true }
  })
  return { hub, lines }
}

function newTab() {
  const heard: ToTab[] = []
  return { heard, tell: (message: ToTab) => heard.push(message) }
}

const event = { seq: 7, type: 'task_deleted', at: '', payload: { id: 'x' } } as const

test('all tabs share one line and hear the same', () => {
  const { hub, lines } = hubWithLines()
  const [first, second] = [newTab(), newTab()]
  hub.take(first, { say: 'join', user: 'u' })
  lines[0]?.on.state('live')
  lines[0]?.on.joined()
  hub.take(second, { say: 'join', user: 'u' })
  expect(lines).toHaveLength(1)
  expect(second.heard).toEqual([{ say: 'state', state: 'live' }, { say: 'joined' }])
  lines[0]?.on.events([event])
  expect(first.heard.at(-1)).toEqual({ say: 'events', events: [event] })
  expect(second.heard.at(-1)).toEqual({ say: 'events', events: [event] })
})

test('a tab that joins before the line stands is told when it does', () => {
  const { hub, lines } = hubWithLines()
  const tab = newTab()
  hub.take(tab, { say: 'join', user: 'u' })
  expect(tab.heard).toEqual([])
  lines[0]?.on.joined()
  expect(tab.heard).toEqual([{ say: 'joined' }])
})

test('the line closes with the last tab and opens with the next', () => {
  const { hub, lines } = hubWithLines()
  const [first, second] = [newTab(), newTab()]
  hub.take(first, { say: 'join', user: 'u' })
  hub.take(second, { say: 'join', user: 'u' })
  hub.take(first, { say: 'leave' })
  expect(lines[0]?.closed).toBe(false)
  hub.take(second, { say: 'leave' })
  expect(lines[0]?.closed).toBe(true)
  hub.take(first, { say: 'join', user: 'u' })
  expect(lines).toHaveLength(2)
})

test('another user never hears the line of the one before', () => {
  const { hub, lines } = hubWithLines()
  const [ada, bo] = [newTab(), newTab()]
  hub.take(ada, { say: 'join', user: 'ada' })
  hub.take(bo, { say: 'join', user: 'bo' })
  expect(lines[0]?.closed).toBe(true)
  expect(ada.heard).toEqual([{ say: 'signed-out' }])
  lines[1]?.on.events([event])
  expect(ada.heard).toHaveLength(1)
  expect(bo.heard).toEqual([{ say: 'events', events: [event] }])
})

test('a session that ended is told to every tab, and joining again begins anew', () => {
  const { hub, lines } = hubWithLines()
  const tab = newTab()
  hub.take(tab, { say: 'join', user: 'u' })
  lines[0]?.on.signedOut()
  expect(tab.heard).toEqual([{ say: 'signed-out' }])
  expect(lines[0]?.closed).toBe(true)
  hub.take(tab, { say: 'join', user: 'u' })
  expect(lines).toHaveLength(2)
})
