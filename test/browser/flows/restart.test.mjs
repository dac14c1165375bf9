// What an agent says is on the page once and in order, also when the page is
// reloaded and the server is killed while the agent works.
import assert from 'node:assert/strict'
import { newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test } from '../lib/flow.mjs'
import { makeSquad, release } from '../lib/squad.mjs'

let server
let browser
stage(async (on) => {
  ({ server, browser } = on)
})

/** All lines of the log, read from the terminal's own buffer of text. */
async function allTicks(executionId) {
  const ticks = []
  let next = ''
  do {
    const page = await server.api(`/events?execution_id=${executionId}&types=log&limit=1000${next && `&after=${next}`}`)
    for (const { payload } of page.items) for (const [, n] of payload.text.matchAll(/tick (\d+)/g)) ticks.push(Number(n))
    next = page.next
  } while (next)
  return ticks
}

test('a reload and a killed server in the middle lose nothing', { timeout: 400_000 }, async () => {
  const { squad, repository, member } = await makeSquad(server, { slow: true })
  const task = await server.api('/tasks', { method: 'POST', body: { squad_id: squad.id, repository_id: repository.id, assignee_id: member.id, title: 'Survive', run: true } })
  const { page, troubles } = await newTab(browser)
  await signIn(page, server)
  const work = `${server.url}/squads/${squad.id}/agents/${member.id}?tab=terminal`
  await page.goto(work)
  const log = page.getByTestId('log')
  await log.getByText(/tick \d+/).first().waitFor(LONG)

  await page.reload()
  await log.getByText(/tick \d+/).first().waitFor(LONG)

  await server.down({ kill: true })
  await page.getByText('reconnecting…').first().waitFor(LONG)
  await shoot(page, 'flow-reconnecting')
  await server.up()
  await page.getByText('reconnecting…').first().waitFor({ state: 'hidden', ...LONG })

  const { execution_id: execution } = await server.api(`/tasks/${task.id}`)
  await release(server, execution)
  await page.goto(`${server.url}/squads/${squad.id}/board`)
  await page.getByRole('region', { name: /^In review, 1 tasks/ }).waitFor(LONG)

  const ticks = await allTicks(execution)
  assert.deepEqual(ticks, ticks.map((_, i) => i + 1), 'the log has a gap or a repeat')
  await page.goto(work)
  await log.getByText(`tick ${ticks.length}`).first().waitFor(LONG)
  assert.deepEqual(troubles, [])
})
