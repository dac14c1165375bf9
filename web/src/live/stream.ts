// The tab's one EventSource. It remembers the number of the last event it handed
// on, asks for what follows when it connects again, and drops what it has seen,
// so that nothing is missed and nothing comes twice.
import { EVENT_TYPES, type SquadEvent } from '@/api/types'

export type LiveState = 'connecting' | 'live' | 'reconnecting'

/** The part of EventSource that is used; tests hand in their own. */
export interface Source {
  readyState: number
  onopen: ((event: Event) => void) | null
  onerror: ((event: Event) => void) | null
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void
  close(): void
}

export interface StreamConfig {
  url: (after: number) => string
  open?: (url: string) => Source
  onEvents: (events: SquadEvent[]) => void
  onState: (state: LiveState) => void
  /** Asked when the server closes the door for good; false ends the stream. */
  mayRetry?: () => Promise<boolean>
  /** Runs the given function once, soon; many events share one call. */
  soon?: (run: () => void) => void
  wait?: (ms: number, run: () => void) => () => void
}

const CLOSED = 2
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 15_000

export class Stream {
  #last: number
  #source: Source | undefined
  #batch: SquadEvent[] = []
  #tries = 0
  #cancelWait: (() => void) | undefined
  #stopped = false
  readonly #config: Required<StreamConfig>

  constructor(after: number, config: StreamConfig) {
    this.#last = after
    this.#config = {
      open: (url) => new EventSource(url, { withCredentials: true }),
      mayRetry: () => Promise.resolve(true),
      soon: (run) => setTimeout(run, 100),
      wait: (ms, run) => {
        const timer = setTimeout(run, ms)
        return () => clearTimeout(timer)
      },
      ...config,
    }
    this.#connect('connecting')
  }

  /** Number of the last event that was taken in. */
  get last() { return this.#last }

  stop() {
    this.#stopped = true
    this.#cancelWait?.()
    this.#source?.close()
    this.#flush()
  }

  #connect(state: LiveState) {
    this.#config.onState(state)
    const source = this.#config.open(this.#config.url(this.#last))
    this.#source = source
    source.onopen = () => {
      this.#tries = 0
      this.#config.onState('live')
    }
    source.onerror = () => this.#failed(source)
    for (const type of EVENT_TYPES) source.addEventListener(type, (message) => this.#take(message))
  }

  #take(message: MessageEvent<string>) {
    let event: SquadEvent
    try {
      event = JSON.parse(message.data) as SquadEvent
    } catch {
      return
    }
    if (!(event.seq > this.#last)) return
    this.#last = event.seq
    this.#batch.push(event)
    if (this.#batch.length === 1) this.#config.soon(() => this.#flush())
  }

  #flush() {
    if (this.#batch.length === 0) return
    const batch = this.#batch
    this.#batch = []
    this.#config.onEvents(batch)
  }

  // The browser reconnects by itself, with Last-Event-ID, unless the server said no
  // (an error status while it restarts, a session that ended): then we ask again.
  #failed(source: Source) {
    if (this.#stopped || source !== this.#source) return
    this.#config.onState('reconnecting')
    if (source.readyState !== CLOSED) return
    source.close()
    const ms = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#tries) * (0.75 + Math.random() / 2)
    this.#tries += 1
    this.#cancelWait = this.#config.wait(ms, () => void this.#again())
  }

  async #again() {
    if (this.#stopped || !(await this.#config.mayRetry())) return
    if (!this.#stopped) this.#connect('reconnecting')
  }
}
