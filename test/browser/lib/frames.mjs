// How smooth a page is: the time between its frames, what held its main thread, and for
// how long it had the processor itself. Only the last is the page's own on a machine
// that is busy with other things.

/** Measures while something is done with the page, and answers figures in milliseconds. */
export async function frames(page, act) {
  const work = await processorTime(page)
  await page.evaluate(() => {
    const seen = { gaps: [], long: [], on: true }
    globalThis.frames = seen
    seen.observer = new PerformanceObserver((list) => seen.long.push(...list.getEntries().map((entry) => entry.duration)))
    seen.observer.observe({ type: 'longtask' })
    let last
    const step = (now) => {
      if (last !== undefined) seen.gaps.push(now - last)
      last = now
      if (seen.on) requestAnimationFrame(step)
    }
    requestAnimationFrame(step)
  })
  await act()
  const { busy, longest } = await work()
  const { gaps, long } = await page.evaluate(() => {
    const { gaps, long, observer } = globalThis.frames
    globalThis.frames.on = false
    observer.disconnect()
    return { gaps, long }
  })
  const sorted = gaps.toSorted((a, b) => a - b)
  const at = (share) => Math.round(sorted[Math.floor(sorted.length * share)] * 10) / 10
  return { frames: gaps.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), worst: Math.round(sorted.at(-1)), 'tasks over 50 ms': long.length, 'longest task': Math.round(Math.max(0, ...long)), 'of it processor': longest, 'processor, % of a core': busy }
}

/** Begins to measure the processor time of the page's main thread, and answers how to end it. */
async function processorTime(page) {
  const cdp = await page.context().newCDPSession(page)
  const events = []
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...value))
  await cdp.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel'], excludedCategories: ['*'] } })
  const began = performance.now()
  return async () => {
    const whole = performance.now() - began
    const collected = new Promise((resolve) => { cdp.once('Tracing.tracingComplete', resolve) })
    await cdp.send('Tracing.end')
    await collected
    await cdp.detach()
    const main = new Set(events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`))
    const tasks = events.filter(({ name, ph, pid, tid }) => ph === 'X' && name === 'ThreadControllerImpl::RunTask' && main.has(`${pid} ${tid}`)).map(({ tdur = 0 }) => tdur / 1000)
    return { longest: Math.round(Math.max(0, ...tasks)), busy: Math.round((tasks.reduce((sum, each) => sum + each, 0) / whole) * 100) }
  }
}

/** Turns the wheel over a place, as a hand does, for so long. */
export async function scroll(page, { x, y }, ms) {
  await page.mouse.move(x, y)
  const end = Date.now() + ms
  for (let down = true; Date.now() < end; down = !down) {
    for (let n = 0; n < 30 && Date.now() < end; n++) await page.mouse.wheel(0, down ? 160 : -160)
  }
}

/** Carries a card around over the board for so long, and puts it back. */
export async function carry(page, card, { width, height }, ms) {
  let box = null // none, or an old one, for a moment in which the list is drawn anew
  for (let n = 0; !box && n < 20; n++) {
    await card.scrollIntoViewIfNeeded().catch(() => {})
    box = await card.boundingBox()
  }
  await page.mouse.move(box.x + 40, box.y + 12)
  await page.mouse.down()
  const end = Date.now() + ms
  while (Date.now() < end) {
    for (const [x, y] of [[width * 0.85, height * 0.7], [width * 0.3, height * 0.4]]) await page.mouse.move(x, y, { steps: 40 })
  }
  await page.keyboard.press('Escape')
  await page.mouse.up()
}
