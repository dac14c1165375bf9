// Without a session there is nothing to see, and with one that ended neither.
import assert from 'node:assert/strict'
import { newTab, signIn } from '../lib/browser.mjs'
import { stage, test } from '../lib/flow.mjs'
import { makeSquad } from '../lib/squad.mjs'

let server
let browser
stage(async (on) => {
  ({ server, browser } = on)
})

test('a stranger sees the door and nothing behind it', { timeout: 120_000 }, async () => {
  const { squad } = await makeSquad(server, { name: 'Very secret squad' })
  const { page } = await newTab(browser)
  const leaks = []
  page.on('response', async (answer) => {
    if (!answer.url().includes('/api/')) return
    const text = await answer.text().catch(() => '')
    if (answer.status() !== 401 || text.includes('secret')) leaks.push(`${answer.url()} ${answer.status()}`)
  })
  for (const path of ['/', `/squads/${squad.id}/board`, `/squads/${squad.id}/settings`, '/system']) {
    await page.goto(server.url + path)
    await page.getByRole('heading', { name: 'Sign in to Agent Squad' }).waitFor()
    assert.equal(await page.getByText('secret squad').count(), 0)
  }
  assert.deepEqual(leaks, [])
  await page.getByLabel('Token').fill('not-a-token')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText(/not valid/).waitFor()
})

test('the session cookie cannot be read by scripts and does not travel', { timeout: 120_000 }, async () => {
  const { page, context } = await newTab(browser)
  await signIn(page, server)
  const [cookie] = await context.cookies()
  assert.equal(cookie.httpOnly, true)
  assert.equal(cookie.sameSite, 'Strict')
  assert.equal(await page.evaluate(() => document.cookie), '')
  const policy = (await page.reload()).headers()['content-security-policy']
  assert.match(policy, /default-src 'none'|default-src 'self'/)
  assert.doesNotMatch(policy, /script-src[^;]*unsafe/)
  const forged = await fetch(`${server.url}/api/v1/squads`, { method: 'POST', headers: { Cookie: `${cookie.name}=${cookie.value}`, Origin: 'https://elsewhere.example', 'Content-Type': 'application/json' }, body: '{"name":"forged"}' })
  assert.equal(forged.status, 403, 'another site can speak in a person’s name')
})

test('signing out closes the page', { timeout: 120_000 }, async () => {
  const { page } = await newTab(browser)
  await signIn(page, server)
  await page.getByRole('navigation', { name: 'Main' }).getByRole('button').last().click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to Agent Squad' }).waitFor()
  await page.goto(`${server.url}/system`)
  await page.getByRole('heading', { name: 'Sign in to Agent Squad' }).waitFor()
})
