// @vitest-environment happy-dom
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router'
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, test } from 'vitest'
import { aMember, anExecution, aTask } from '@/test/make'
import { Card, type CardProps } from './Card'

afterEach(cleanup)

async function show(props: CardProps) {
  const router = createRouter({ routeTree: createRootRoute({ component: () => <Card {...props} /> }), history: createMemoryHistory() })
  render(<RouterProvider router={router as never} />)
  await screen.findByRole('article')
}

test('a card names its task, its member and what the member does', async () => {
  await show({ task: aTask({ number: 7, title: 'Fix it', status: 'in_progress', cost_usd: 0.42 }), member: aMember(), execution: anExecution({ step: 'clone', percent: 40 }) })
  expect(screen.getByRole('link', { name: 'Fix it' })).toBeDefined()
  expect(screen.getByText('#7')).toBeDefined()
  expect(screen.getByRole('img', { name: 'Ada, working' })).toBeDefined()
  expect(screen.getByRole('progressbar', { name: 'Step 2 of 7: clone, 40%' })).toBeDefined()
  expect(screen.getByText('$0.42')).toBeDefined()
})

test('a card in the queue says what it waits for, once', async () => {
  const execution = anExecution({ status: 'queued', liveness: { detail: 'waits for #3 Paint the fence' } })
  await show({ task: aTask({ status: 'in_progress' }), execution, waitsFor: 1 })
  expect(screen.getByText('Queued')).toBeDefined()
  expect(screen.getByText('waits for #3 Paint the fence')).toBeDefined()
  expect(screen.queryByText(/Waits for 1 task/)).toBeNull()
})

test('a card says why it does not move', async () => {
  await show({ task: aTask({ flag: 'failed', cause: 'Tests fail.' }), conflict: { repository_id: 'r', task_id: 't', files: ['a.go', 'b.go'] }, waitsFor: 2 })
  expect(screen.getByText(/Tests fail\./)).toBeDefined()
  expect(screen.getByText(/Overlaps with its base in a\.go \+1/)).toBeDefined()
  expect(screen.getByText(/Waits for 2 tasks/)).toBeDefined()
})
