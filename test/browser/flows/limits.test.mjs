// What holds people and agents back, and how the page says so: a role, a budget, a
// draft.
import assert from 'node:assert/strict'
import { axe, newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test } from '../lib/flow.mjs'
import { startModel } from '../lib/model.mjs'
import { makeSquad } from '../lib/squad.mjs'

let server
let browser
let made
const env = async () => ({ OPENAI_API_KEY: 'sk-of-the-test', OPENAI_BASE_URL: await startModel({ tokensOut: 100_000 }) }) // $0.20 an answer
stage(async (on) => {
  ({ server, browser } = on)
  made = await makeSquad(server, { name: 'Limits' })
}, { env })

const post = (path, body) => server.api(path, { method: 'POST', body })
const add = (body) => post('/tasks', { squad_id: made.squad.id, repository_id: made.repository.id, ...body })

test('a spent budget stops the task; it is raised on the page, and the work goes on', { timeout: 240_000 }, async () => {
  const member = await post('/members', { squad_id: made.squad.id, name: 'Max', role: 'developer', llm_provider: 'openai', llm_model: 'gpt-5-mini', config: { agent: 'llm' } })
  const task = await add({ title: 'Greet cheaply', assignee_id: member.id, budget: { task_usd: 0.05 }, run: true })
  const { page, context, troubles } = await newTab(browser)
  await signIn(page, server)
  await page.goto(`${server.url}/squads/${made.squad.id}/board`)
  const card = page.getByRole('article').filter({ hasText: 'Greet cheaply' })
  await card.getByText('The budget of this task is spent').waitFor(LONG)
  await card.getByText('$0.20').waitFor()
  await shoot(page, 'flow-budget-card')
  await page.getByRole('link', { name: 'Greet cheaply' }).click()
  const trouble = page.getByRole('region', { name: 'Why it does not move' })
  await trouble.getByText(/the budget of the task does not allow this call/).waitFor()
  await shoot(page, 'flow-budget')
  assert.deepEqual(await axe(page), [])

  await trouble.getByRole('button', { name: 'Raise the budget' }).click()
  const field = page.getByRole('spinbutton', { name: 'Budget, US dollars' })
  await field.and(page.locator(':focus')).waitFor()
  await field.fill('2')
  await page.keyboard.press('Enter')
  await page.getByText('of $2.00').waitFor()
  await trouble.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('region', { name: 'Pull request' }).waitFor(LONG)
  const { cost_usd: cost } = await server.api(`/tasks/${task.id}`)
  assert.ok(cost > 0.4 && cost < 2, `it cost ${cost}`)

  await page.goto(`${server.url}/squads/${made.squad.id}/insights`)
  await page.getByRole('img', { name: /^Cost by day, \$0\.6/ }).waitFor()
  await page.getByRole('region', { name: 'By member' }).getByText('Max').waitFor()
  await page.getByRole('region', { name: 'By task' }).getByText(/Greet cheaply/).waitFor()
  await shoot(page, 'flow-insights')
  assert.deepEqual(troubles, [])
  await context.close()
})

test('a draft is marked as ready for review on the page', { timeout: 240_000 }, async () => {
  await server.api(`/repositories/${made.repository.id}`, { method: 'PATCH', body: { policy: { draft: true } } })
  const task = await add({ title: 'Begin as a draft', assignee_id: made.member.id, run: true })
  const { page, context, troubles } = await newTab(browser)
  await signIn(page, server)
  await page.goto(`${server.url}/squads/${made.squad.id}/tasks/${task.number}`)
  const pull = page.getByRole('region', { name: 'Pull request' })
  await pull.getByText('Draft', { exact: true }).waitFor(LONG)
  assert.equal(await pull.getByRole('button', { name: 'Merge' }).count(), 0)
  await shoot(page, 'flow-draft')
  await pull.getByRole('button', { name: 'Ready for review' }).click()
  await pull.getByText('Open', { exact: true }).waitFor()
  await pull.getByRole('button', { name: 'Merge' }).waitFor()
  const { items } = await server.api(`/pulls?task_id=${task.id}`)
  assert.equal(items[0].draft ?? false, false)
  assert.deepEqual(troubles, [])
  await context.close()
})

test('a viewer reads everything that is theirs and is offered nothing that is refused', { timeout: 240_000 }, async () => {
  const vera = await post('/users', { name: 'Vera' })
  const place = (role) => server.api(`/squads/${made.squad.id}/users/${vera.id}`, { method: 'PUT', body: { role } })
  await place('viewer')
  const { page, context, troubles } = await newTab(browser)
  const refused = []
  page.on('response', (answer) => { if (answer.status() === 403) refused.push(`${answer.request().method()} ${answer.url()}`) })
  await page.goto((await post(`/users/${vera.id}/sign-in-link`, {})).url)
  await page.getByText('You read along').waitFor()
  const root = `${server.url}/squads/${made.squad.id}`
  const work = `${root}/agents/${made.member.id}`
  const { items } = await server.api(`/tasks?squad_id=${made.squad.id}`)
  const number = items.find((each) => each.title === 'Begin as a draft').number
  const pages = [
    [`${root}/board`, page.getByRole('link', { name: 'Begin as a draft' })],
    [`${root}/tasks/${number}`, page.getByRole('region', { name: 'Pull request' })],
    [`${root}/tasks/${number}?tab=changes`, page.getByRole('region', { name: 'hello.txt' })],
    [`${root}/agents`, page.getByRole('link', { name: /Ada/ })],
    [work, page.getByRole('log', { name: 'Activity' })],
    [`${work}?tab=conversations`, page.getByRole('tab', { name: 'Conversations', selected: true })],
    [`${work}?tab=terminal`, page.getByTestId('log')],
    [`${work}?tab=files`, page.getByText('For members of the squad')],
    [`${work}?tab=changes`, page.getByRole('region', { name: 'hello.txt' })],
    [`${root}/sandboxes`, page.getByText('local/base').first()],
    [`${root}/insights`, page.getByRole('heading', { name: 'Cost by day' })],
    [`${root}/settings`, page.getByText('Max')],
    [`${root}/settings?tab=people`, page.getByRole('combobox', { name: 'Role of Vera', disabled: true })],
    [`${root}/settings?tab=repositories`, page.getByText(made.repository.name)],
    [`${root}/settings?tab=credentials`, page.getByText('For administrators of the squad')],
    [`${root}/settings?tab=policy`, page.getByRole('textbox', { name: 'Name', disabled: true })],
    [`${root}/settings?tab=templates`, page.getByRole('listitem').filter({ hasText: 'this machine’s own system' })],
    [`${server.url}/system`, page.getByText('For administrators of the installation')],
  ]
  const VERBS = /^(new task|new sandbox|add |start|cancel|try again|more|merge|approve|ready|edit|ask for|send|keep|build|check|save|what to do|steer|take |delete|revoke|examine|read the state|select |move )/i
  for (const [path, landmark] of pages) {
    await page.goto(path)
    await landmark.first().waitFor()
    await page.getByRole('status', { name: /^Loading/ }).first().waitFor({ state: 'hidden' })
    const buttons = await page.getByRole('main').getByRole('button').evaluateAll((all) => all.filter((each) => !each.disabled).map((each) => each.getAttribute('aria-label') ?? each.textContent))
    const open = await page.getByRole('main').locator('input:enabled:not([type=search]):not([aria-label="Search the log"]), textarea:enabled:not(.xterm-helper-textarea)').count()
    assert.deepEqual(buttons.filter((name) => VERBS.test(name)), path.endsWith('/system') ? ['New token'].filter((name) => VERBS.test(name)) : [], path)
    assert.equal(open, 0, `${path} has a field that can be written`)
  }
  await page.goto(`${root}/tasks/${number}`)
  await page.getByRole('combobox', { name: 'Member', disabled: true }).waitFor()
  await shoot(page, 'flow-viewer')
  assert.deepEqual(refused, [])

  await place('member')
  await page.goto(`${root}/board`)
  await page.getByRole('button', { name: 'New task' }).waitFor()
  assert.equal(await page.getByText('You read along').count(), 0)
  assert.deepEqual(troubles, [])
  await context.close()
})
