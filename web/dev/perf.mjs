// How smooth the board is while events pour in: frame times and long tasks.
//   npm run build; node dev/fake.mjs --port 7811 --tasks 500 --every 230 &
//   node dev/perf.mjs http://127.0.0.1:7811 dev [seconds]
// It reports and judges nothing: a loaded machine gives worse figures.
import { createRequire } from 'node:module'

const { chromium } = createRequire(new URL('../../test/browser/', import.meta.url))('playwright-core')
const [base, token, seconds = '10'] = process.argv.slice(2)
const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-dev-shm-usage']
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: FLAGS })
const page = await browser.newPage({ viewport: { width: 1440, height: 860 } })
await page.goto(`${base}/sign-in`)
await page.getByLabel('Token').fill(token)
await page.getByRole('button', { name: 'Sign in' }).click()
await page.getByRole('region', { name: /^In progress/ }).waitFor()
const cards = await page.getByRole('region', { name: /tasks$/ }).evaluateAll((all) => all.map((each) => each.getAttribute('aria-label')))
const session = await page.context().newCDPSession(page)
await session.send('Performance.enable')
const used = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]))
const before = await used()
const frames = await page.evaluate(async (ms) => {
  const long = []
  new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask' })
  const gaps = []
  let last = performance.now()
  const end = last + ms
  await new Promise((resolve) => {
    const step = (now) => {
      gaps.push(now - last)
      last = now
      if (now < end) requestAnimationFrame(step)
      else resolve()
    }
    requestAnimationFrame(step)
  })
  return { gaps, long }
}, Number(seconds) * 1000)
const after = await used()
const gaps = frames.gaps.slice(1).toSorted((a, b) => a - b)
const at = (share) => `${gaps[Math.floor(gaps.length * share)]?.toFixed(1)} ms`
const share = (name) => `${(((after[name] - before[name]) / Number(seconds)) * 100).toFixed(1)}% of the time`
console.log(cards.join(' · '))
console.log({ frames: gaps.length, 'frame p50': at(0.5), p95: at(0.95), p99: at(0.99), worst: `${gaps.at(-1)?.toFixed(1)} ms` })
console.log({ 'long tasks (> 50 ms)': frames.long.length, 'longest': `${Math.max(0, ...frames.long).toFixed(0)} ms`, script: share('ScriptDuration'), layout: share('LayoutDuration'), style: share('RecalcStyleDuration') })
await browser.close()
