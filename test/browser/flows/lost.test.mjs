// Sandboxes that die and sandboxes that nobody owns, as people see them: a dot on the
// card, a row in the list, and work that goes on.
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { axe, newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test, until } from '../lib/flow.mjs'
import { makeSquad, release } from '../lib/squad.mjs'

let server
let browser
let made
stage(async (on) => {
  ({ server, browser } = on)
  made = await makeSquad(server, { slow: true, name: 'Losers' })
})

const executionOf = async (task) => server.api(`/executions/${(await server.api(`/tasks/${task.id}`)).execution_id}`)

/** Ends the process of a sandbox as the kernel does when memory runs out. */
async function kill(id) {
  const { e2b_id: name } = await server.api(`/sandboxes/${id}`)
  const { pid } = JSON.parse(readFileSync(join(server.data, 'sandboxes', name, 'state.json'), 'utf8'))
  process.kill(pid, 'SIGKILL')
}

async function open(path) {
  const tab = await newTab(browser)
  await signIn(tab.page, server)
  await tab.page.goto(`${server.url}/squads/${made.squad.id}${path}`)
  return tab
}

test('a sandbox that dies is lost on its card and in the list, and the work goes on in another', { timeout: 300_000 }, async ({ step }) => {
  const { squad, repository, member } = made
  const task = await server.api('/tasks', { method: 'POST', body: { squad_id: squad.id, repository_id: repository.id, assignee_id: member.id, title: 'Outlive your house', run: true } })
  const { page, context, troubles } = await open('/board')
  const card = page.getByRole('article').filter({ hasText: task.title })
  const dot = (words) => card.getByRole('img', { name: `Sandbox ${words}` })
  await dot('running').waitFor(LONG)
  await until('the agent is at work', async () => (await executionOf(task)).step === 'agent')
  const first = (await executionOf(task)).sandbox_id

  await step('it dies while the agent works', async () => {
    await kill(first)
    await until('there is another', async () => ![first, undefined].includes((await executionOf(task)).sandbox_id))
    await dot('running').waitFor(LONG)
    await release(server, (await executionOf(task)).id)
    await page.getByRole('region', { name: /^In review, 1 tasks/ }).waitFor(LONG)
  })

  await step('it dies while the work waits for review', async () => {
    await kill((await executionOf(task)).sandbox_id)
    await dot('lost').waitFor(LONG) // the next sweep finds it
    await shoot(page, 'flow-lost-card')
    assert.deepEqual(await axe(page), [])
  })

  await step('both are in the list, with the reason', async () => {
    await page.goto(`${server.url}/squads/${squad.id}/sandboxes`)
    await page.getByRole('radio', { name: 'Lost 2' }).click()
    const rows = page.getByRole('main').getByRole('listitem').filter({ hasText: task.title })
    await rows.nth(1).waitFor()
    for (const row of await rows.all()) await row.getByText(/was killed|gone|lost/).last().waitFor()
    await shoot(page, 'flow-lost')
    assert.deepEqual(await axe(page), [])
  })
  assert.deepEqual(troubles, [])
  await context.close()
})

test('an orphan, of which a restored database knows nothing, is destroyed and shown', { timeout: 240_000 }, async () => {
  const database = join(server.data, 'squad.db')
  const older = join(server.data, 'older.db')
  await server.down()
  copyFileSync(database, older)
  await server.up()
  const orphan = await server.api('/sandboxes', { method: 'POST', body: { squad_id: made.squad.id } })
  const home = join(server.data, 'sandboxes', orphan.e2b_id, 'state.json')
  const { pid } = JSON.parse(readFileSync(home, 'utf8'))
  await server.down({ kill: true })
  for (const end of ['-wal', '-shm']) rmSync(database + end, { force: true })
  copyFileSync(older, database)
  assert.ok(existsSync(`/proc/${pid}`), 'the sandbox outlives its server')
  await server.up()

  const { page, context, troubles } = await open('/sandboxes')
  await page.getByRole('radio', { name: /^Lost/ }).click()
  const row = page.getByRole('main').getByRole('listitem').filter({ hasText: orphan.e2b_id })
  await row.getByText('an orphan: it ran at its provider and nobody here owned it; it was destroyed').waitFor(LONG)
  await row.getByText('Nobody’s').waitFor()
  await until('its process is gone', () => !existsSync(`/proc/${pid}`))
  await shoot(page, 'flow-orphan')
  assert.deepEqual(troubles, [])
  await context.close()
})
