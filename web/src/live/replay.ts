// Closes the gap between a load and the stream. While a query loads, events may
// arrive that its answer is too old to contain; they are kept until the answer is
// there and applied on top of it. With nothing loading nothing is kept.
import type { QueryCache } from '@tanstack/react-query'
import type { SquadEvent } from '@/api/types'

export class Replay {
  #kept: SquadEvent[] = []
  #dropped = 0
  readonly #loading = new Map<string, number>()

  /** Remembers events as long as some load is under way. */
  keep(events: SquadEvent[]) {
    if (this.#loading.size > 0) this.#kept.push(...events)
  }

  began(load: string) {
    this.#loading.set(load, this.#dropped + this.#kept.length)
  }

  /** Events that arrived since the load began. */
  ended(load: string): SquadEvent[] {
    const from = this.#loading.get(load)
    this.#loading.delete(load)
    const missed = from === undefined ? [] : this.#kept.slice(from - this.#dropped)
    if (this.#loading.size === 0) {
      this.#dropped += this.#kept.length
      this.#kept = []
    }
    return missed
  }

  /** Follows a query cache; `apply` gets what each finished load may have missed. */
  watch(cache: QueryCache, apply: (events: SquadEvent[]) => void): () => void {
    return cache.subscribe((notice) => {
      if (notice.type !== 'updated') return
      const { action, query } = notice
      if (action.type === 'fetch') this.began(query.queryHash)
      else if (action.type === 'error') this.ended(query.queryHash)
      else if (action.type === 'success' && !action.manual) {
        const missed = this.ended(query.queryHash)
        if (missed.length > 0) apply(missed)
      }
    })
  }
}
