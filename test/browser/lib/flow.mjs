// How a flow is told: its server and its browser start side by side, and a step that
// fails says on which page, beside what work, and what the server had to say.
import { after, before, test as plain } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { closeTabs, launch, openTabs } from './browser.mjs'
import { report } from './report.mjs'
import { Server } from './server.mjs'

/** For what waits for sandboxes, agents or a restart. */
export const LONG = { timeout: 120_000 }
const REPORT_MS = 60_000
const STAGE_MS = 300_000

/** Asks until the answer is yes: for what the page tells before the server has it. */
export async function until(words, ask, { timeout } = LONG) {
  const end = Date.now() + timeout
  while (!await ask()) {
    if (Date.now() > end) throw new Error(`not in ${timeout} ms: ${words}`)
    await sleep(100)
  }
}

/** Starts a server and a browser before the flow and ends them after it; `ready` is told of them. */
export function stage(ready, { env, skip } = {}) {
  let server
  let browser
  before(async () => {
    if (skip) return
    [server, browser] = await Promise.all([Server.start(await env?.()), launch()])
    await ready({ server, browser })
  }, { timeout: STAGE_MS })
  after(async () => {
    await Promise.all([browser?.close(), server?.close()])
  }, { timeout: STAGE_MS })
}

/** A test whose failure is told with what a person needs to find its cause. */
export function test(name, { timeout, ...options }, told) {
  plain(name, { ...options, timeout: timeout + REPORT_MS }, async (t) => {
    let timer
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not done after ${timeout} ms`)), timeout) })
    const progress = { at: '' }
    const step = async (words, act) => {
      progress.at = words
      await act()
      t.diagnostic(`${words}: done`)
    }
    try {
      await Promise.race([told({ step }), late])
    } catch (error) {
      console.error(await report({ name: [name, progress.at].filter(Boolean).join(' > '), servers: Server.running, pages: openTabs() }))
      await closeTabs()
      throw error
    } finally {
      clearTimeout(timer)
    }
  })
}
