// Pictures of every page in light, dark and on a phone, for looking at.
//   node dev/shots.mjs http://127.0.0.1:7788 dev [board task …]
import { createRequire } from 'node:module'
import { mkdirSync } from 'node:fs'

const { chromium } = createRequire(new URL('../../test/browser/package.json', import.meta.url))('playwright-core')
const [base, token, ...only] = process.argv.slice(2)
const out = new URL('../screenshots/', import.meta.url).pathname
mkdirSync(out, { recursive: true })

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', headless: true, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-dev-shm-usage'] })
const LOOKS = { light: { colorScheme: 'light', viewport: { width: 1440, height: 860 } }, dark: { colorScheme: 'dark', viewport: { width: 1440, height: 860 } }, phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } }

for (const [look, options] of Object.entries(LOOKS)) {
  const context = await browser.newContext({ ...options, locale: 'en-GB' })
  const page = await context.newPage()
  page.on('console', (message) => message.type() === 'error' && console.log(look, page.url(), message.text()))
  page.on('pageerror', (error) => console.log(look, page.url(), error.message))
  await page.goto(`${base}/sign-in`)
  if (!only.length || only.includes('signin')) await page.screenshot({ path: `${out}signin-${look}.png` })
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/board/)
  const root = page.url().replace(/\/board.*/, '')
  const api = (path) => page.evaluate((p) => fetch(`/api/v1${p}`).then((r) => r.json()), path)
  const squad = root.split('/').at(-1)
  const { items: tasks } = await api(`/tasks?squad_id=${squad}&limit=500`)
  const { items: members } = await api(`/members?squad_id=${squad}`)
  const inReview = tasks.find((task) => task.status === 'in_review') ?? tasks[0]
  const pages = {
    board: '/board', task: `/tasks/${tasks[0]?.number}`, changes: `/tasks/${inReview?.number}?tab=changes`, agents: '/agents', work: `/agents/${members[0]?.id}`,
    conversations: `/agents/${members[0]?.id}?tab=conversations`, thoughts: `/agents/${members[0]?.id}?tab=thoughts`, terminal: `/agents/${members[0]?.id}?tab=terminal`, files: `/agents/${members[0]?.id}?tab=files`,
    sandboxes: '/sandboxes', insights: '/insights', settings: '/settings', system: '/system',
  }
  for (const [name, path] of Object.entries(pages)) {
    if (only.length && !only.includes(name)) continue
    await page.goto(name === 'system' ? `${base}/system` : root + path)
    await page.waitForTimeout(1300)
    await page.screenshot({ path: `${out}${name}-${look}.png` })
  }
  await context.close()
}
await browser.close()
