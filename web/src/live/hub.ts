// One line for all tabs of a browser. Browsers allow six connections to a host
// over HTTP/1.1, for all tabs together: a stream in each tab would leave the
// seventh waiting for ever.
import type { SquadEvent } from '@/api/types'
import type { Listener } from './line'
import type { LiveState } from './stream'

export type FromTab = { say: 'join'; user: string } | { say: 'leave' }
export type ToTab = { say: 'joined' } | { say: 'state'; state: LiveState } | { say: 'events'; events: SquadEvent[] } | { say: 'signed-out' }

export interface Tab { tell: (message: ToTab) => void }

export class Hub {
  readonly #open: (on: Listener) => () => void
  readonly #tabs = new Set<Tab>()
  #close: (() => void) | undefined
  #user = ''
  #state: LiveState = 'connecting'
  #begun = false

  constructor(open: (on: Listener) => () => void) {
    this.#open = open
  }

  take(tab: Tab, message: FromTab) {
    if (message.say === 'leave') this.#leave(tab)
    else this.#join(tab, message.user)
  }

  #join(tab: Tab, user: string) {
    // Another user has signed in: neither the open stream nor what the other tabs
    // show is theirs.
    if (user !== this.#user) {
      this.#end()
      this.#tell({ say: 'signed-out' })
      this.#tabs.clear()
    }
    this.#user = user
    this.#tabs.add(tab)
    if (!this.#close) return this.#begin()
    tab.tell({ say: 'state', state: this.#state })
    if (this.#begun) tab.tell({ say: 'joined' })
  }

  #leave(tab: Tab) {
    this.#tabs.delete(tab)
    if (this.#tabs.size === 0) this.#end()
  }

  #begin() {
    this.#close = this.#open({
      joined: () => {
        this.#begun = true
        this.#tell({ say: 'joined' })
      },
      events: (events) => this.#tell({ say: 'events', events }),
      state: (state) => {
        this.#state = state
        this.#tell({ say: 'state', state })
      },
      signedOut: () => {
        this.#end()
        this.#tell({ say: 'signed-out' })
      },
    })
  }

  #end() {
    this.#close?.()
    this.#close = undefined
    this.#begun = false
    this.#state = 'connecting'
  }

  #tell(message: ToTab) {
    for (const tab of this.#tabs) tab.tell(message)
  }
}
