import { afterEach, describe, expect, test, vi } from 'vitest'
import { all, api, apiPath, Problem, wordsOf } from './client'

afterEach(() => vi.unstubAllGlobals())
const answer = (...replies: Response[]) => vi.stubGlobal('fetch', vi.fn(() => Promise.resolve(replies.shift() ?? new Response(null, { status: 500 }))))

describe('the door to the server', () => {
  test('leaves out what is not asked for', () => expect(apiPath('/tasks', { squad_id: 'a b', label: undefined, q: '' })).toBe('/api/v1/tasks?squad_id=a+b'))

  test('a problem speaks in the server’s words, with its fields', async () => {
    answer(Response.json({ code: 'invalid', detail: 'title: is too long', errors: [{ field: 'title', detail: 'is too long' }, { field: 'labels', detail: 'too many' }] }, { status: 400 }))
    const error = await api('/tasks').catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(Problem)
    expect(error).toMatchObject({ status: 400, code: 'invalid' })
    expect(wordsOf(error)).toBe('title: is too long labels: too many')
  })

  test('a server that is down is called that', async () => {
    vi.stubGlobal('fetch', vi.fn(() => Promise.reject(new TypeError('failed'))))
    await expect(api('/tasks')).rejects.toMatchObject({ code: 'offline' })
  })

  test('an answer without a problem body still says something', async () => {
    answer(new Response('<html>', { status: 502, statusText: 'Bad Gateway' }))
    await expect(api('/tasks')).rejects.toThrow('Bad Gateway')
  })

  test('a list is read to its end', async () => {
    answer(Response.json({ items: [1, 2], next: 'c' }), Response.json({ items: [3] }))
    await expect(all('/tasks')).resolves.toEqual([1, 2, 3])
  })
})
