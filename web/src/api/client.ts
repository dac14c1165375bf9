// One door to the server: paths under /api/v1, problem JSON as errors, and the
// headers that make a change safe (If-Match, Idempotency-Key, CSRF).
import type { Page } from './types'

export interface FieldError { field: string; message: string }

/** A refusal of the server, with words that can be shown. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: FieldError[] = [],
  ) {
    super(message)
    this.name = 'Problem'
  }
  get isMissing() { return this.status === 404 }
  get isSignedOut() { return this.status === 401 }
  get isNotThereYet() { return this.status === 503 || this.status === 501 }
}

export type Query = Record<string, string | number | boolean | undefined>

export function apiPath(path: string, query: Query = {}): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') params.set(key, String(value))
  }
  const text = params.toString()
  return `/api/v1${path}${text ? `?${text}` : ''}`
}

interface Send { method?: string; body?: unknown; query?: Query; ifMatch?: string; signal?: AbortSignal; once?: boolean }

export async function api<T>(path: string, send: Send = {}): Promise<T> {
  const answer = await request(path, send)
  if (answer.status === 204) return undefined as T
  return (await answer.json()) as T
}

export async function request(path: string, { method = 'GET', body, query, ifMatch, signal, once }: Send = {}): Promise<Response> {
  const headers = new Headers({ Accept: 'application/json' })
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  if (ifMatch) headers.set('If-Match', ifMatch)
  if (once) headers.set('Idempotency-Key', crypto.randomUUID())
  let answer: Response
  try {
    answer = await fetch(apiPath(path, query), {
      method, headers, signal: signal ?? null, credentials: 'same-origin',
      body: body === undefined ? null : JSON.stringify(body),
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new Problem(0, 'offline', 'The server does not answer. Is it running?')
  }
  if (!answer.ok) throw await problemOf(answer)
  return answer
}

async function problemOf(answer: Response): Promise<Problem> {
  let body: Record<string, unknown> = {}
  try {
    body = (await answer.json()) as Record<string, unknown>
  } catch {
    // not JSON: the status line has to do
  }
  const text = (key: string) => (typeof body[key] === 'string' ? (body[key] as string) : '')
  const fields = Array.isArray(body.errors)
    ? (body.errors as Record<string, unknown>[]).map((e) => ({ field: String(e.field ?? e.location ?? '').replace(/^body\./, ''), message: String(e.detail ?? e.message ?? '') }))
    : []
  const detail = text('detail') || text('title') || answer.statusText || `The server answered ${answer.status}.`
  return new Problem(answer.status, text('code') || 'http', detail, fields)
}

/** Reads a list to its end, page by page, at most `most` items. */
export async function all<T>(path: string, query: Query = {}, most = 5000, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = []
  let after: string | undefined
  do {
    const page: Page<T> = await api(path, { query: { limit: 1000, ...query, after }, ...(signal && { signal }) })
    items.push(...(page.items ?? []))
    after = page.next || undefined
  } while (after && items.length < most)
  return items
}

export function wordsOf(error: unknown): string {
  if (error instanceof Problem) {
    const fields = error.fields.filter((f) => f.message && !error.message.includes(f.message))
    return [error.message, ...fields.map((f) => (f.field ? `${f.field}: ${f.message}` : f.message))].join(' ')
  }
  return error instanceof Error ? error.message : 'Something went wrong.'
}
