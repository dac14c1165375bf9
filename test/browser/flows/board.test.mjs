// The board under the hand: dragged cards, refused moves, many at once, many tabs.
import assert from 'node:assert/strict'
import { newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test, until } from '../lib/flow.mjs'
import { makeSquad } from '../lib/squad.mjs'

let server
let browser
let made
stage(async (on) => {
  ({ server, browser } = on)
  made = await makeSquad(server, { name: 'Movers' })
})

const add = (title, status = 'backlog') => server.api('/tasks', { method: 'POST', body: { squad_id: made.squad.id, repository_id: made.repository.id, title, status } })
const column = (page, name) => page.getByRole('region', { name: new RegExp(`^${name}`) })

async function board() {
  const tab = await newTab(browser)
  await signIn(tab.page, server)
  await tab.page.goto(`${server.url}/squads/${made.squad.id}/board`)
  return tab
}

const says = (page, words) => page.getByRole('status').filter({ hasText: words }).first().waitFor({ state: 'attached' })

/** Lifts a card with a real pointer and answers the middle of the column it is to go to. */
async function lift(page, title, from, to) {
  const card = column(page, from).getByRole('article').filter({ hasText: title })
  await card.waitFor()
  const [a, b] = [await card.boundingBox(), await column(page, to).boundingBox()]
  await page.mouse.move(a.x + a.width / 2, a.y + 12)
  await page.mouse.down()
  await page.mouse.move(a.x + a.width / 2 + 12, a.y + 20, { steps: 3 })
  await says(page, new RegExp(`Lifted ${title}|${title} is over`))
  return [b.x + b.width / 2, b.y + 90]
}

/** Carries a card over a column in steps, as a hand does, until the page says that it is there. */
async function drag(page, title, from, to) {
  await page.mouse.move(...await lift(page, title, from, to), { steps: 12 })
  await says(page, `${title} is over ${to}`)
}

test('a card is dragged by mouse; a refused move goes back with its reason', { timeout: 120_000 }, async () => {
  const task = await add('Carry me')
  const { page, context, troubles } = await board()
  await drag(page, 'Carry me', 'Backlog', 'Todo')
  await shoot(page, 'flow-drag')
  await page.mouse.up()
  await column(page, 'Todo').getByRole('link', { name: 'Carry me' }).waitFor()
  await until('the card is in Todo', async () => (await server.api(`/tasks/${task.id}`)).status === 'todo')

  await drag(page, 'Carry me', 'Todo', 'In review')
  await page.mouse.up()
  await page.getByText(/stays in Todo/).waitFor()
  await page.getByText(/It cannot go to In review:/).waitFor()
  await column(page, 'Todo').getByRole('link', { name: 'Carry me' }).waitFor()
  assert.equal((await server.api(`/tasks/${task.id}`)).status, 'todo')
  assert.deepEqual(troubles, [])
  await context.close()
})

test('a card that is let go in one quick stroke lands under the pointer', { timeout: 120_000 }, async () => {
  const task = await add('Flick me')
  const { page, context, troubles } = await board()
  const there = await lift(page, 'Flick me', 'Backlog', 'Todo')
  // The page has no time to draw the card over its new column before it is let go.
  await Promise.all([page.mouse.move(...there), page.mouse.up()])
  await until('the card is in Todo', async () => (await server.api(`/tasks/${task.id}`)).status === 'todo')
  await column(page, 'Todo').getByRole('link', { name: 'Flick me' }).waitFor()
  assert.deepEqual(troubles, [])
  await context.close()
})

test('many cards are moved, given away and deleted at once, after one question', { timeout: 120_000 }, async () => {
  const tasks = [await add('Bulk one'), await add('Bulk two')]
  const { page, context, troubles } = await board()
  const bar = page.getByRole('toolbar', { name: 'Chosen tasks' })
  const choose = async () => {
    for (const { title } of tasks) await page.getByRole('checkbox', { name: `Select ${title}` }).click()
    await bar.getByText('2 chosen').waitFor()
  }
  await choose()
  await bar.getByRole('button', { name: 'Move' }).click()
  await page.getByRole('menuitem', { name: 'Todo' }).click()
  for (const { title } of tasks) await column(page, 'Todo').getByRole('link', { name: title }).waitFor()
  await bar.waitFor({ state: 'hidden' })
  await choose()
  await bar.getByRole('button', { name: 'Assign' }).click()
  await page.getByRole('menuitem', { name: 'Ada' }).click()
  await bar.waitFor({ state: 'hidden' })
  for (const { id } of tasks) assert.equal((await server.api(`/tasks/${id}`)).assignee_id, made.member.id)
  await choose()
  await bar.getByRole('button', { name: 'Delete' }).click()
  const asked = page.getByRole('alertdialog', { name: 'Delete 2 tasks?' })
  await asked.getByText(/gone for good/).waitFor()
  await asked.getByRole('button', { name: 'Not now' }).click()
  await page.getByRole('link', { name: 'Bulk one' }).waitFor()
  await bar.getByRole('button', { name: 'Delete' }).click()
  await asked.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('link', { name: 'Bulk one' }).waitFor({ state: 'hidden' })
  const { items } = await server.api(`/tasks?squad_id=${made.squad.id}`)
  assert.equal(items.some((task) => task.title.startsWith('Bulk')), false)
  assert.deepEqual(troubles, [])
  await context.close()
})

test('nine tabs of one browser are all live', { timeout: 120_000 }, async () => {
  const { page, context } = await board()
  const tabs = [page]
  while (tabs.length < 9) {
    const next = await context.newPage()
    await next.goto(`${server.url}/squads/${made.squad.id}/board`)
    await column(next, 'Todo').waitFor()
    tabs.push(next)
  }
  for (const tab of tabs) await tab.getByRole('status').getByText('live').first().waitFor({ state: 'attached' })
  const { subscribers } = await server.api('/sse/stats')
  await add('Seen in every tab', 'todo')
  for (const tab of tabs) await tab.getByRole('link', { name: 'Seen in every tab' }).waitFor()
  assert.ok(subscribers < tabs.length, `${subscribers} streams for one browser`)
  await context.close()
})

test('cards are found by member, repository, label and text; one waits for another', { timeout: 120_000 }, async () => {
  const [first, second] = [await add('Paint the fence', 'todo'), await add('Wash the fence', 'todo')]
  await server.api(`/tasks/${first.id}`, { method: 'PATCH', body: { labels: ['garden'], assignee_id: made.member.id } })
  const { page, context, troubles } = await board()
  const [paint, wash] = ['Paint the fence', 'Wash the fence'].map((name) => page.getByRole('link', { name }))
  await page.getByRole('searchbox', { name: 'Filter tasks by text' }).fill('wash')
  await paint.waitFor({ state: 'hidden' })
  await wash.waitFor()
  await page.getByRole('searchbox', { name: 'Filter tasks by text' }).fill('fence')
  await paint.waitFor()
  for (const [field, choice] of [['Member', 'Ada'], ['Repository', made.repository.name], ['Label', 'garden']]) {
    await page.getByRole('button', { name: /^Filters/ }).click()
    await page.getByRole('combobox', { name: field }).selectOption({ label: choice })
    await (field === 'Repository' ? wash.waitFor() : wash.waitFor({ state: 'hidden' }))
    await paint.waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await wash.waitFor()
    await page.keyboard.press('Escape')
  }
  await wash.click()
  await page.getByRole('combobox', { name: 'Waits for' }).selectOption({ label: `#${first.number} Paint the fence` })
  await page.getByRole('list', { name: 'Waits for' }).getByRole('link', { name: /Paint the fence/ }).waitFor()
  await page.getByRole('link', { name: 'Board' }).last().click()
  await page.getByRole('article').filter({ hasText: 'Wash the fence' }).getByText('Waits for 1 task').waitFor()
  await until('the server knows what it waits for', async () => String((await server.api(`/tasks/${second.id}`)).depends_on) === first.id)

  await server.api(`/tasks/${second.id}/run`, { method: 'POST', body: {} })
  const words = `waits for #${first.number} Paint the fence`
  const card = page.getByRole('article').filter({ hasText: 'Wash the fence' })
  await column(page, 'In progress').getByText('Queued').waitFor()
  await card.getByText(words).waitFor()
  await card.getByText('Waits for 1 task').waitFor({ state: 'hidden' })
  await shoot(page, 'flow-queued')
  await wash.click()
  await page.getByRole('region', { name: 'Executions' }).getByText(words).waitFor()
  await server.api(`/tasks/${first.id}/move`, { method: 'POST', body: { status: 'done' } })
  await page.getByRole('region', { name: 'Pull request' }).waitFor(LONG) // it began by itself
  assert.deepEqual(troubles, [])
  await context.close()
})
