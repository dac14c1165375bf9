// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, cleanup, renderHook, waitFor } from '@testing-library/react'
import type { ReactNode } from 'react'
import { afterEach, expect, test, vi } from 'vitest'
import { keys } from '@/api/keys'
import type { Task } from '@/api/types'
import { aTask, gate } from '@/test/make'
import { toasts } from '@/ui/toast'
import { useMove } from './useMove'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function setup(answer: () => Promise<Response>) {
  vi.stubGlobal('fetch', vi.fn(answer))
  const cache = new QueryClient()
  cache.setQueryData(keys.tasks('squad'), [aTask({ number: 3, status: 'todo' })])
  const wrapper = ({ children }: { children: ReactNode }) => <QueryClientProvider client={cache}>{children}</QueryClientProvider>
  const { result } = renderHook(() => useMove('squad'), { wrapper })
  const task = () => cache.getQueryData<Task[]>(keys.tasks('squad'))?.[0]
  return { result, task }
}

test('a move is shown at once and taken back with the reason when it is refused', async () => {
  const server = gate<Response>()
  const { result, task } = setup(() => server.promise)
  const before = task()
  if (!before) throw new Error('no task')
  act(() => result.current.mutate({ task: before, to: 'done', position: 4 }))
  await waitFor(() => expect(task()?.status).toBe('done'))
  server.open(Response.json({ code: 'conflict', detail: 'It is not merged.' }, { status: 409 }))
  await waitFor(() => expect(task()?.status).toBe('todo'))
  expect(toasts.all().at(-1)).toMatchObject({ text: '#3 stays in Todo', detail: 'It cannot go to Done: It is not merged.' })
})

test('an accepted move takes the server’s row', async () => {
  const { result, task } = setup(() => Promise.resolve(Response.json(aTask({ number: 3, status: 'backlog', version: 2, position: 9 }))))
  const before = task()
  if (!before) throw new Error('no task')
  act(() => result.current.mutate({ task: before, to: 'backlog', position: 4 }))
  await waitFor(() => expect(task()).toMatchObject({ status: 'backlog', version: 2, position: 9 }))
})
