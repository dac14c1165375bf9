// The main road: sign in, add a task, watch it work, read the diff, comment, see
// the second turn, merge, find the card in Done. Two browsers see the same.
import assert from 'node:assert/strict'
import { newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test } from '../lib/flow.mjs'
import { makeSquad } from '../lib/squad.mjs'

let server
let browser
stage(async (on) => {
  ({ server, browser } = on)
})

test('from a task to its merge', { timeout: 300_000 }, async ({ step }) => {
  const { squad, member } = await makeSquad(server)
  const { page, troubles } = await newTab(browser)
  const second = await newTab(browser)

  await step('the printed link signs in, once', async () => {
    await page.goto(server.link)
    await page.getByRole('heading', { name: 'Board' }).waitFor()
    const { page: thief, context } = await newTab(browser)
    await thief.goto(server.link)
    await thief.getByText('That link was used before or is too old.').waitFor()
    await context.close()
  })

  await signIn(second.page, server)
  await second.page.goto(`${server.url}/squads/${squad.id}/board`)

  await step('a task is added and appears in both browsers', async () => {
    await page.getByRole('textbox', { name: 'Quick add a task' }).fill('Say hello to the world')
    await page.keyboard.press('Enter')
    for (const tab of [page, second.page]) await tab.getByRole('region', { name: /^Todo, 1 tasks/ }).getByRole('link', { name: 'Say hello to the world' }).waitFor()
  })

  await step('a message to the agent is in both browsers', async () => {
    const conversation = `${server.url}/squads/${squad.id}/agents/${member.id}?tab=conversations`
    for (const tab of [page, second.page]) await tab.goto(conversation)
    await second.page.getByText('Nobody has written yet').waitFor()
    await page.getByRole('textbox', { name: 'Write to Ada' }).fill('Please be *brief*.')
    await page.keyboard.press('Enter')
    for (const tab of [page, second.page]) await tab.getByRole('log', { name: 'Conversation' }).getByText('brief').waitFor()
    for (const tab of [page, second.page]) await tab.goto(`${server.url}/squads/${squad.id}/board`)
  })

  await step('it starts from its page and is watched live', async () => {
    await page.getByRole('link', { name: 'Say hello to the world' }).click()
    await page.getByRole('combobox', { name: 'Member' }).selectOption({ label: 'Ada' })
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('button', { name: 'Watch the work' }).click(LONG)
    const activity = page.getByRole('log', { name: 'Activity' })
    await activity.getByText('I will write').waitFor(LONG)
    await activity.getByText('ls -a').waitFor()
    await page.getByRole('tab', { name: /Thoughts/ }).click()
    await page.getByText('I look at the repository first.').waitFor()
    await page.getByRole('tab', { name: 'Terminal' }).click()
    await page.getByTestId('log').getByText('working on turn 1, line 5').first().waitFor()
    await shoot(page, 'flow-terminal')
  })

  await step('the card reaches In review by itself', async () => {
    await second.page.getByRole('region', { name: /^In review, 1 tasks/ }).getByRole('link', { name: 'Say hello to the world' }).waitFor(LONG)
    await shoot(second.page, 'flow-board-review')
  })

  await step('its sandbox opens a shell and shows its files', async () => {
    await page.getByRole('radio', { name: 'Shell' }).click()
    const shell = page.getByTestId('shell')
    await shell.getByText(/[$#]/).first().waitFor(LONG)
    await shell.locator('textarea:focus').waitFor({ state: 'attached' })
    await page.keyboard.type('echo sum-$((40 + 2))\n')
    await shell.getByText('sum-42').first().waitFor()
    await page.getByRole('tab', { name: 'Files' }).click()
    await page.getByRole('button', { name: /hello\.txt/ }).click()
    await page.getByText('hello from Ada').waitFor()
    await page.getByRole('tab', { name: 'Changes' }).click()
    await page.getByRole('region', { name: 'hello.txt' }).getByText('hello from Ada').first().waitFor()
  })

  await step('the diff is read and a line is commented', async () => {
    await page.getByRole('link', { name: /^Task #/ }).click()
    await page.getByRole('tab', { name: 'Changes' }).click()
    const file = page.getByRole('region', { name: 'hello.txt' })
    await file.getByText('hello from Ada').first().waitFor()
    await shoot(page, 'flow-diff')
    await file.getByText('second line').first().hover()
    await file.locator('.diff-add-widget').last().click()
    await page.getByRole('textbox', { name: /Comment on line 2 of hello.txt/ }).fill('Please add one more line.')
    await page.getByRole('button', { name: 'Send to the agent' }).click()
    await page.getByText('Please add one more line.').first().waitFor()
  })

  await step('the agent does a second turn', async () => {
    await page.getByRole('region', { name: 'hello.txt' }).getByText('as the review asked').first().waitFor(LONG)
    await shoot(page, 'flow-second-turn')
  })

  await step('it is approved and merged, and the card is in Done everywhere', async () => {
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('button', { name: 'Approved' }).waitFor()
    await page.getByRole('button', { name: 'Merge' }).click(LONG)
    await page.getByRole('alertdialog').getByRole('button', { name: 'Merge' }).click()
    await second.page.getByRole('region', { name: /^Done, 1 tasks/ }).getByRole('link', { name: 'Say hello to the world' }).waitFor(LONG)
    await shoot(second.page, 'flow-board-done')
    const { items } = await server.api(`/tasks?squad_id=${squad.id}`)
    assert.equal(items[0].status, 'done')
    await page.goto(`${server.url}/tasks/${items[0].number}`)
    await page.getByRole('heading', { name: 'Say hello to the world', exact: true }).waitFor()
  })

  assert.deepEqual([...troubles, ...second.troubles], [])
})
