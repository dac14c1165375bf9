// What people do with agents at work: try several ways, answer, see overlaps,
// read the log and the files, follow the changes.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { asks } from '../lib/asks.mjs'
import { newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test, until } from '../lib/flow.mjs'
import { addMember, AGENT, ASKING, makeSquad, release } from '../lib/squad.mjs'

let server
let browser
stage(async (on) => {
  ({ server, browser } = on)
})

const post = (path, body) => server.api(path, { method: 'POST', body })

async function open(path) {
  const tab = await newTab(browser)
  await signIn(tab.page, server)
  await tab.page.goto(server.url + path)
  return tab
}

test('a task is tried 3 ways, the results are compared, one is kept', { timeout: 240_000 }, async () => {
  const { squad, repository } = await makeSquad(server, { name: 'Three ways' })
  const task = await post('/tasks', { squad_id: squad.id, repository_id: repository.id, title: 'Say it in three ways' })
  const { page, context, troubles } = await open(`/squads/${squad.id}/tasks/${task.number}`)
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Try it 3 ways' }).click()
  const ways = page.getByRole('region', { name: 'Tried several ways' })
  for (const n of [1, 2, 3]) await ways.getByRole('listitem', { name: `Way ${n}` }).getByText('finished').waitFor(LONG)
  const second = ways.getByRole('listitem', { name: 'Way 2' })
  await second.getByRole('button', { name: /1 file/ }).click(LONG)
  await page.getByRole('dialog', { name: 'What way 2 changed' }).getByText('hello from Ada').first().waitFor(LONG)
  await page.keyboard.press('Escape')
  await shoot(page, 'flow-three-ways')
  await second.getByRole('button', { name: 'Keep this one' }).click()
  const asked = page.getByRole('alertdialog', { name: 'Keep way 2?' })
  await asked.getByText(/other tries are stopped/).waitFor()
  await asked.getByRole('button', { name: 'Keep it' }).click()
  await ways.waitFor({ state: 'hidden', ...LONG })
  await page.getByRole('region', { name: 'Pull request' }).waitFor(LONG)
  await until('the other two are cancelled', async () => {
    const { items } = await server.api(`/executions?task_id=${task.id}`)
    return String(items.toSorted((a, b) => (a.lane ?? 0) - (b.lane ?? 0)).map((each) => each.status === 'cancelled')) === 'true,false,true'
  })
  assert.deepEqual(troubles, [])
  await context.close()
})

test('an agent asks, a person answers on the page, and it goes on', { timeout: 240_000 }, async () => {
  const { squad, repository } = await makeSquad(server, { name: 'Questions' })
  const asker = await addMember(server, squad, 'Quinn', ASKING)
  const task = await post('/tasks', { squad_id: squad.id, repository_id: repository.id, assignee_id: asker.id, title: 'Paint the shed', run: true })
  const { page, context, troubles } = await open(`/squads/${squad.id}/board`)
  await page.getByText('Asks you a question').waitFor(LONG)
  await page.getByRole('link', { name: 'Paint the shed' }).click()
  const question = page.getByRole('region', { name: 'Quinn asks' })
  await question.getByText('Which colour shall it be?').waitFor()
  await shoot(page, 'flow-question')
  await question.getByRole('textbox', { name: 'Answer Quinn' }).fill('Red, please.')
  await question.getByRole('button', { name: 'Answer' }).click()
  await question.waitFor({ state: 'hidden' })
  await page.getByRole('region', { name: 'Pull request' }).waitFor(LONG)
  const { items } = await server.api(`/messages?squad_id=${squad.id}`)
  assert.ok(items.some((message) => message.body === 'Red, please.' && message.task_id === task.id))

  await page.getByRole('tab', { name: 'Changes' }).click()
  const large = page.getByRole('region', { name: 'numbers.txt' })
  await large.getByText('700 changed lines, folded.').waitFor(LONG)
  await large.getByRole('button', { name: 'Show them' }).click()
  await large.getByText('699', { exact: true }).first().waitFor()
  await page.getByRole('region', { name: 'paint.go' }).locator('[class*=hljs-keyword]').first().waitFor()
  await page.getByRole('radio', { name: 'Inline' }).click()
  await page.getByRole('region', { name: 'paint.go' }).locator('.unified-diff-table-wrapper, .unified-diff-view-wrapper, [class*=unified]').first().waitFor({ state: 'attached' })
  assert.deepEqual(troubles, [])
  await context.close()
})

test('an overlap is shown on both cards and on the task', { timeout: 240_000 }, async () => {
  const { squad, repository, member } = await makeSquad(server, { name: 'Overlaps' })
  const other = await addMember(server, squad, 'Bo', AGENT)
  const add = (title, who) => post('/tasks', { squad_id: squad.id, repository_id: repository.id, assignee_id: who.id, title, run: true })
  const [world, moon] = [await add('Greet the world', member), await add('Greet the moon', other)]
  const { page, context } = await open(`/squads/${squad.id}/board`)
  await page.getByRole('region', { name: /^In review, 2 tasks/ }).waitFor(LONG)
  const cards = page.getByRole('article')
  for (const [task, rival] of [[world, moon], [moon, world]]) await cards.filter({ hasText: task.title }).getByText(`Overlaps with #${rival.number} in hello.txt`).waitFor(LONG)
  await page.getByRole('link', { name: 'Greet the moon' }).click()
  await page.getByRole('complementary', { name: 'Properties' }).getByText(`Overlaps with #${world.number}`).waitFor()
  await context.close()
})

test('work is followed live, and its log and files stay readable', { timeout: 240_000 }, async () => {
  const { squad, repository, member } = await makeSquad(server, { slow: true, name: 'Followers' })
  const task = await post('/tasks', { squad_id: squad.id, repository_id: repository.id, assignee_id: member.id, title: 'Take your time', run: true })
  const { page, context, troubles } = await open(`/squads/${squad.id}/agents/${member.id}?tab=changes`)
  await page.getByRole('region', { name: 'draft.txt' }).getByText('half done').first().waitFor(LONG) // before any commit
  const { execution_id: execution } = await server.api(`/tasks/${task.id}`)
  await release(server, execution)
  await page.getByRole('region', { name: 'hello.txt' }).getByText('hello from Ada').first().waitFor(LONG)
  await page.getByRole('tab', { name: /Activity/ }).click()
  await page.getByRole('region', { name: 'Now' }).getByText('waiting').waitFor(LONG)

  await page.getByRole('tab', { name: 'Terminal' }).click()
  await page.getByTestId('log').getByText('working on turn 1, line 5').first().waitFor(LONG)
  await page.getByRole('textbox', { name: 'Search the log' }).fill('working on turn')
  await page.keyboard.press('Enter')
  await page.getByText('5 of 5').waitFor()
  await page.getByRole('button', { name: 'Find earlier' }).click()
  await page.getByText('4 of 5').waitFor()
  await page.getByRole('textbox', { name: 'Search the log' }).fill('no such words')
  await page.keyboard.press('Enter')
  await page.getByText('not found').waitFor()

  await page.getByRole('tab', { name: 'Files' }).click()
  await page.getByRole('button', { name: /hello\.txt/ }).click(LONG)
  await page.getByText('second line').waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()])
  assert.equal(readFileSync(await download.path(), 'utf8'), 'hello from Ada\nsecond line\n')
  assert.deepEqual(troubles, [])
  await context.close()
})

// Says much, then waits until it is let go or stopped.
const CHATTY = `
i=0; while [ $i -lt 60 ]; do i=$((i+1)); printf '{"squad":"message","id":"m%s","text":"word %s of many"}\\n' $i $i; done
n=0; while [ ! -e /home/user/go ] && [ $n -lt 600 ]; do n=$((n+1)); sleep 0.2; done
printf '{"squad":"message","id":"end","text":"the last word"}\\n'; echo more > more.txt; git add .; git commit -qm "feat: say more"
`

const executionOf = async (task, attempt) => (await server.api(`/executions?task_id=${task.id}`)).items.find((each) => each.attempt === attempt).id

test('a long talk is followed, left and taken up again; the run is cancelled after one question and tried again', { timeout: 240_000 }, async () => {
  const { squad, repository } = await makeSquad(server, { name: 'Talkers' })
  const talker = await addMember(server, squad, 'Tilda', CHATTY)
  const task = await post('/tasks', { squad_id: squad.id, repository_id: repository.id, assignee_id: talker.id, title: 'Say much', run: true })
  const { page, context, troubles } = await open(`/squads/${squad.id}/agents/${talker.id}`)
  const log = page.getByRole('log', { name: 'Activity' })
  await log.getByText('word 60 of many').waitFor(LONG)
  await log.hover()
  await page.mouse.wheel(0, -3000)
  const latest = page.getByRole('button', { name: /Jump to the latest|new entr/ })
  await latest.waitFor()
  await log.getByText('word 60 of many').waitFor({ state: 'hidden' })
  await latest.click()
  await log.getByText('word 60 of many').waitFor()
  await latest.waitFor({ state: 'hidden' })

  await page.goto(`${server.url}/squads/${squad.id}/tasks/${task.number}`)
  await asks(page, { open: () => page.getByRole('button', { name: 'Cancel' }).click(), title: `Cancel #${task.number}?`, lost: /since the last checkpoint is lost/, verb: 'Cancel it' })
  const trouble = page.getByRole('region', { name: 'Why it does not move' })
  await trouble.getByText('Cancelled', { exact: true }).waitFor(LONG)
  await trouble.getByRole('button', { name: 'Try again' }).click()
  await trouble.waitFor({ state: 'hidden', ...LONG })
  await page.getByText('attempt 2').waitFor(LONG)
  const second = await executionOf(task, 2)
  await release(server, second)
  await page.getByRole('region', { name: 'Pull request' }).waitFor(LONG)

  const menu = (button, item) => page.getByRole('button', { name: button }).click().then(() => page.getByRole('menuitem', { name: item }).click())
  await page.getByRole('button', { name: 'Watch the work' }).click()
  await asks(page, { open: () => menu('Steer the agent', 'Stop the agent…'), title: 'Stop this agent?', lost: /since the last checkpoint is lost/, verb: 'Stop it' })
  await until('the agent is stopped', async () => (await server.api(`/executions/${second}`)).status === 'cancelled')
  await page.getByRole('link', { name: `Task #${task.number}` }).click()
  await asks(page, { open: () => menu('More', 'Delete…'), title: `Delete #${task.number}?`, lost: /executions and logs are gone for good/, verb: 'Delete' })
  await page.waitForURL(/\/board$/)
  assert.equal((await server.api(`/tasks?squad_id=${squad.id}`)).items.length, 0)
  assert.deepEqual(troubles, [])
  await context.close()
})
