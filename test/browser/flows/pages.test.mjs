// What every page has: keys, words for loading, empty and failed, a way home, and the
// reader's own language.
import assert from 'node:assert/strict'
import { axe, newTab, shoot, signIn } from '../lib/browser.mjs'
import { stage, test, until } from '../lib/flow.mjs'
import { makeSquad } from '../lib/squad.mjs'

let server
let browser
let made
stage(async (on) => {
  ({ server, browser } = on)
  made = await makeSquad(server, { name: 'Readers' })
  const { squad, repository } = made
  await server.api('/tasks', { method: 'POST', body: { squad_id: squad.id, repository_id: repository.id, title: 'Explain refused egress with the rule’s name', status: 'backlog', labels: ['docs'] } })
})

test('the keyboard goes everywhere: palette, and a card from column to column', { timeout: 120_000 }, async () => {
  const { page } = await newTab(browser)
  await signIn(page, server)
  await page.goto(`${server.url}/squads/${made.squad.id}/board`)
  await page.getByRole('link', { name: 'Explain refused egress' }).waitFor()
  await page.getByRole('button', { name: /^Move Explain refused egress/ }).focus()
  await page.keyboard.press('Space')
  await page.getByText(/Explain refused egress.* is over Backlog/).waitFor({ state: 'attached' })
  await page.keyboard.press('ArrowRight')
  await page.getByText(/is over Todo/).waitFor({ state: 'attached' })
  await page.keyboard.press('Space')
  await page.getByRole('region', { name: /^Todo/ }).getByRole('link', { name: 'Explain refused egress' }).waitFor()
  await until('the card is in Todo', async () => (await server.api(`/tasks?squad_id=${made.squad.id}`)).items.some((task) => task.title.startsWith('Explain') && task.status === 'todo'))

  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /Search tasks/ }).fill('system')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Doctor' }).waitFor()
})

test('every view says that it loads, that it is empty, and that it failed, and how to go on', { timeout: 240_000 }, async () => {
  const empty = await server.api('/squads', { method: 'POST', body: { name: 'Nothing yet' } })
  const { page, context, troubles } = await newTab(browser)
  await signIn(page, server)
  const root = `${server.url}/squads/${empty.id}`
  const views = [
    [`${root}/board`, '/tasks', 'The board', 'Ready to be given to an agent'],
    [`${root}/agents`, '/members', 'The agents', 'This squad has no members yet'],
    [`${root}/sandboxes`, '/sandboxes', 'The sandboxes', undefined], // other squads' are shown too
    [`${root}/insights`, '/insights', 'The figures', 'Nothing was spent in this time.'],
    [`${root}/settings`, '/members', 'The members', 'No members yet'],
    [`${root}/settings?tab=people`, '/users', 'The people', undefined], // its maker has a place
    [`${root}/settings?tab=repositories`, '/repositories', 'The repositories', 'No repositories yet'],
    [`${root}/settings?tab=credentials`, '/credentials', 'The credentials', 'No credentials'],
    [`${root}/settings?tab=templates`, '/templates', 'The templates', undefined], // base is always there
    [`${server.url}/system`, '/doctor', 'The report', undefined],
  ]
  for (const [path, source, what, nothing] of views) {
    let let_go
    const held = new Promise((resolve) => { let_go = resolve })
    const pattern = (url) => url.pathname.startsWith('/api/v1') && url.pathname.endsWith(source)
    await page.route(pattern, async (route) => {
      await held
      await route.fulfill({ status: 403, contentType: 'application/problem+json', body: '{"code":"forbidden","detail":"refused by the test"}' })
    })
    await page.goto(path)
    if (!path.endsWith('/insights')) await page.getByRole('status', { name: /^Loading/ }).first().waitFor()
    // Once the stream is live nothing is read again by itself: the view waits for the person.
    await page.getByRole('status').getByText('live').first().waitFor({ state: 'attached' })
    let_go()
    const alert = page.getByRole('alert').filter({ hasText: `${what} could not be loaded` })
    await alert.getByText('refused by the test').waitFor()
    await page.unroute(pattern)
    await alert.getByRole('button', { name: 'Try again' }).click()
    await alert.waitFor({ state: 'hidden' })
    if (nothing) await page.getByText(nothing).first().waitFor()
  }
  assert.deepEqual(troubles, [])
  await context.close()
})

test('a wrong address says so and leads home', { timeout: 120_000 }, async () => {
  const { page, context, troubles } = await newTab(browser)
  await signIn(page, server)
  const root = `/squads/${made.squad.id}`
  const nobody = '01900000-0000-7000-8000-000000000000'
  const wrong = [
    ['/nowhere/at/all', 'There is nothing here', 'To your board'],
    [`/squads/${nobody}/board`, 'This squad does not exist', 'To your board'],
    [`${root}/nothing`, 'There is nothing here', 'To your board'],
    [`${root}/tasks/9999`, 'There is no task #9999', 'To your board'],
    [`${root}/tasks/x'<b>`, "There is no task #x'<b>", 'To your board'],
    ['/tasks/9999', 'There is no task #9999', 'To your board'],
    [`/pulls/${nobody}`, 'There is no such pull request', 'To your board'],
    [`${root}/agents/${nobody}`, 'This agent does not exist', 'To the agents'],
    [`${root}/sandboxes/${nobody}`, 'There is nothing here', 'To your board'],
  ]
  for (const [path, words, way] of wrong) {
    await page.goto(server.url + path)
    await page.getByRole('heading', { name: words, exact: true }).waitFor()
    assert.equal(await page.title(), `${words} · Agent Squad`)
    await page.getByRole('link', { name: way }).click()
    await page.getByRole('heading', { name: way === 'To the agents' ? 'Agents' : 'Board' }).waitFor()
  }
  await page.goto(`${server.url}${root}/tasks/9999`)
  await page.getByRole('link', { name: 'To your board' }).waitFor()
  await shoot(page, 'flow-wrong-address')
  assert.deepEqual(await axe(page), [])
  assert.deepEqual(troubles, [])
  await context.close()
})

test('amounts and times are in the language of the reader', { timeout: 120_000 }, async () => {
  const { page, context } = await newTab(browser, 'light', 'de-DE')
  await signIn(page, server)
  await page.goto(`${server.url}/squads/${made.squad.id}/insights`)
  await page.getByText(/^0,00\s\$$/).first().waitFor()
  await page.goto(`${server.url}/system`)
  await page.getByRole('region', { name: 'Audit log', exact: true }).getByText(/^vor \d+ (Sekunden?|Minuten?)|^jetzt/).first().waitFor()
  await context.close()
})
