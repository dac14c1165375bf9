import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const require = createRequire(import.meta.url)
export const SHOTS = new URL('../screenshots/', import.meta.url).pathname

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage']

/** How long one step of a page may take where both cores are busy with other things. */
const STEP_MS = 60_000

export const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1440, height: 860 } },
  dark: { colorScheme: 'dark', viewport: { width: 1440, height: 860 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
}

const browsers = new Set()

export async function launch() {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: FLAGS })
  browsers.add(browser)
  browser.once('disconnected', () => browsers.delete(browser))
  return browser
}

const contexts = () => [...browsers].flatMap((browser) => browser.contexts())

/** Every page that is open now. */
export const openTabs = () => contexts().flatMap((context) => context.pages())

export const closeTabs = () => Promise.all(contexts().map((context) => context.close()))

/** A tab that remembers what went wrong in it. */
export async function newTab(browser, look = 'light', locale = 'en-GB') {
  const context = await browser.newContext({ ...LOOKS[look], locale })
  context.setDefaultTimeout(STEP_MS)
  const page = await context.newPage()
  const troubles = []
  page.on('pageerror', (error) => troubles.push(`${page.url()}: ${error.message}`))
  page.on('console', (message) => {
    // A server that is down or refuses is told to the user by the page; the browser's own line about it is no defect.
    if (message.type() === 'error' && !/Failed to load resource|net::ERR|EventSource|WebSocket connection/.test(message.text())) troubles.push(`${page.url()}: ${message.text()}`)
  })
  return { context, page, troubles }
}

export async function signIn(page, server) {
  await page.goto(`${server.url}/sign-in`)
  await page.getByLabel('Token').fill(server.token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL((url) => !url.pathname.startsWith('/sign-in'))
}

export async function shoot(page, name) {
  mkdirSync(SHOTS, { recursive: true })
  await page.screenshot({ path: `${SHOTS}${name}.png` })
}

/** What axe calls serious or worse, in short. */
export async function axe(page) {
  await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'))
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations'], preload: false })
    return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 140)} ${node.any[0]?.message ?? ''}`).join(' | ')}`)
  })
}
