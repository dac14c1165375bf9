import { describe, expect, test, vi } from 'vitest'
import type { SquadEvent } from '@/api/types'
import { type LiveState, type Source, Stream, type StreamConfig } from './stream'

class FakeSource implements Source {
  readyState = 0
  onopen: Source['onopen'] = null
  onerror: Source['onerror'] = null
  closed = false
  #listeners = new Map<string, (event: MessageEvent<string>) => void>()
  constructor(readonly url: string) {}
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void) { this.#listeners.set(type, listener) }
  close() { this.closed = true }
  open() { this.readyState = 1; this.onopen?.(new Event('open')) }
  drop() { this.readyState = 0; this.onerror?.(new Event('error')) }
  refuse() { this.readyState = 2; this.onerror?.(new Event('error')) }
  send(seq: number, type = 'log') { this.raw(type, JSON.stringify({ seq, type, at: '', payload: {} })) }
  raw(type: string, data: string) { this.#listeners.get(type)?.(new MessageEvent(type, { data })) }
}

function start(after = 10, extra: Partial<StreamConfig> = {}) {
  const sources: FakeSource[] = []
  const states: LiveState[] = []
  const got: number[] = []
  const waits: (() => void)[] = []
  const flush: (() => void)[] = []
  const stream = new Stream(after, {
    url: (last) => `/sse?after=${last}`,
    open: (url) => {
      const source = new FakeSource(url)
      sources.push(source)
      return source
    },
    onEvents: (events: SquadEvent[]) => got.push(...events.map((event) => event.seq)),
    onState: (state) => states.push(state),
    soon: (run) => flush.push(run),
    wait: (_ms, run) => {
      waits.push(run)
      return () => undefined
    },
    ...extra,
  })
  const settle = () => { for (const run of flush.splice(0)) run() }
  const last = () => {
    const source = sources.at(-1)
    if (!source) throw new Error('no source was opened')
    return source
  }
  return { stream, sources, states, got, waits, settle, last }
}

describe('the stream', () => {
  test('begins behind the newest known event', () => {
    const { last } = start(10)
    expect(last().url).toBe('/sse?after=10')
  })

  test('hands events on in one batch, each once', () => {
    const { last, got, settle } = start(10)
    last().open()
    for (const seq of [11, 12, 12, 11, 13]) last().send(seq)
    expect(got).toEqual([])
    settle()
    expect(got).toEqual([11, 12, 13])
  })

  test('shows that it reconnects and resumes when the browser does it', () => {
    const { last, states, got, settle, sources } = start(0)
    last().open()
    last().send(1)
    last().drop()
    expect(states).toEqual(['connecting', 'live', 'reconnecting'])
    last().open()
    last().send(1)
    last().send(2)
    settle()
    expect(got).toEqual([1, 2])
    expect(sources).toHaveLength(1)
  })

  test('opens a new connection behind the last event when the server refused', async () => {
    const { last, waits, sources, got, settle } = start(0)
    last().open()
    last().send(1)
    last().send(7)
    last().refuse()
    expect(sources[0]?.closed).toBe(true)
    waits[0]?.()
    await vi.waitFor(() => expect(sources).toHaveLength(2))
    expect(last().url).toBe('/sse?after=7')
    last().open()
    last().send(7)
    last().send(8)
    settle()
    expect(got).toEqual([1, 7, 8])
  })

  test('stops asking when the session has ended', async () => {
    const mayRetry = vi.fn(() => Promise.resolve(false))
    const { last, waits, sources } = start(0, { mayRetry })
    last().refuse()
    waits[0]?.()
    await vi.waitFor(() => expect(mayRetry).toHaveBeenCalled())
    expect(sources).toHaveLength(1)
  })

  test('ignores what it cannot read and kinds it does not know', () => {
    const { last, got, settle } = start(0)
    last().open()
    last().raw('log', 'not json')
    last().raw('something_new', '{"seq":5}')
    last().send(6)
    settle()
    expect(got).toEqual([6])
  })

  test('does nothing after it was stopped', () => {
    const { stream, last, waits } = start(0)
    stream.stop()
    last().refuse()
    expect(last().closed).toBe(true)
    expect(waits).toHaveLength(0)
  })
})
