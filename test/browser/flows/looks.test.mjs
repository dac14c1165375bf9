// Every page in light, dark and on a phone: nothing breaks, axe finds nothing
// serious, and a picture is left to look at.
import assert from 'node:assert/strict'
import { axe, LOOKS, newTab, shoot, signIn } from '../lib/browser.mjs'
import { stage, test, until } from '../lib/flow.mjs'
import { addMember, AGENT, makeSquad } from '../lib/squad.mjs'

let server
let browser
let made
stage(async (on) => {
  ({ server, browser } = on)
  made = await makeSquad(server, { name: 'Gallery' })
  const { squad, repository, member } = made
  const add = (body) => server.api('/tasks', { method: 'POST', body: { squad_id: squad.id, repository_id: repository.id, ...body } })
  await add({ title: 'Explain refused egress with the rule’s name', status: 'backlog', labels: ['docs'] })
  await add({ title: 'Retry pushes when the base moved', priority: 3, labels: ['bug', 'git'], assignee_id: member.id })
  made.task = await add({ title: 'Say hello', description: '# Goal\n\nSay **hello**.\n\n- [ ] in a file', assignee_id: member.id, run: true })
  made.busy = await addMember(server, squad, 'Bo', AGENT, { SLOW: '1' })
  await add({ title: 'Find out why the second clone waits for the first', assignee_id: made.busy.id, labels: ['bug'], run: true })
  await until('one is at work and one in review', async () => {
    const { items } = await server.api(`/executions?squad_id=${squad.id}`)
    return String(items.map((each) => each.step).toSorted()) === 'agent,review'
  })
})

for (const look of Object.keys(LOOKS)) {
  test(`all pages, ${look}`, { timeout: 240_000 }, async () => {
    const { page, context, troubles } = await newTab(browser, look)
    await page.goto(`${server.url}/sign-in`)
    await shoot(page, `signin-${look}`)
    const found = (await axe(page)).map((line) => `sign-in: ${line}`)
    await signIn(page, server)
    const root = `/squads/${made.squad.id}`
    const work = `${root}/agents/${made.member.id}`
    const pages = {
      board: [`${root}/board`, page.getByRole('link', { name: 'Say hello' })],
      task: [`${root}/tasks/${made.task.number}`, page.getByRole('heading', { name: 'Say hello', exact: true })],
      changes: [`${root}/tasks/${made.task.number}?tab=changes`, page.getByRole('tab', { name: 'Changes' })],
      agents: [`${root}/agents`, page.getByRole('heading', { name: 'Agents' })],
      work: [`${root}/agents/${made.busy.id}`, page.getByRole('tab', { name: /Activity/ })],
      conversations: [`${work}?tab=conversations`, page.getByRole('textbox', { name: 'Write to Ada' })],
      thoughts: [`${work}?tab=thoughts`, page.getByRole('tab', { name: /Thoughts/ })],
      terminal: [`${work}?tab=terminal`, page.getByRole('textbox', { name: 'Search the log' })],
      files: [`${work}?tab=files`, page.getByRole('tab', { name: 'Files' })],
      sandboxes: [`${root}/sandboxes`, page.getByRole('heading', { name: 'Sandboxes' })],
      insights: [`${root}/insights`, page.getByRole('heading', { name: 'Cost by day' })],
      squad: [`${root}/settings`, page.getByRole('heading', { name: 'Members' })],
      policy: [`${root}/settings?tab=policy`, page.getByRole('spinbutton', { name: 'A task', exact: true })],
      system: ['/system', page.getByRole('heading', { name: 'Doctor' })],
    }
    for (const [name, [path, landmark]] of Object.entries(pages)) {
      await page.goto(server.url + path)
      await landmark.first().waitFor()
      await page.waitForLoadState('domcontentloaded')
      await page.getByRole('status', { name: /^Loading/ }).first().waitFor({ state: 'hidden' })
      await shoot(page, `${name}-${look}`)
      found.push(...(await axe(page)).map((line) => `${name}: ${line}`))
      assert.match(await page.title(), /. · Agent Squad$/, `${name} has no title`)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1)
      assert.equal(wide, false, `${name} is wider than the screen`)
    }
    await context.close()
    assert.deepEqual(found, [])
    assert.deepEqual(troubles, [])
  })
}
