// How smooth the board is with 500 cards, of which 100 are at work, on the real server
// with real sandboxes:
//   make build; SQUAD_BIN=$PWD/bin/squad node test/browser/perf.mjs
// It measures the same board before and while they work, reports and judges nothing:
// agents, server and browser share the machine. PERF_TASKS and PERF_RUNNING change the
// numbers; an address and a token as arguments measure a server that is there already.
import { launch, newTab, shoot, signIn } from './lib/browser.mjs'
import { LONG, until } from './lib/flow.mjs'
import { carry, frames, scroll } from './lib/frames.mjs'
import { Server } from './lib/server.mjs'
import { makeSquad } from './lib/squad.mjs'

const SECONDS = 8
const MEMBERS = 10
const [url, token] = process.argv.slice(2)
const tasks = Number(process.env.PERF_TASKS ?? 500)
const running = Number(process.env.PERF_RUNNING ?? 100)

// Says something every five seconds and waits in between without a process of its own: a
// hundred sandboxes that start one each would measure the machine and not the page.
const AGENT = `bash -c 'mkfifo /tmp/never; exec 3<>/tmp/never; for n in {1..400}; do echo "line $n of the work"; read -t 5 -u 3; done'`

const browser = await launch()
const server = url ? { url, token, close: () => {} } : await Server.start({ SQUAD_MAX_RUNNING: String(running) })
try {
  const { page } = await newTab(browser)
  await signIn(page, server)
  const waiting = url ? undefined : await fill()
  if (waiting) await page.goto(`${server.url}/squads/${waiting[0].squad_id}/board`)
  await page.getByRole('article').first().waitFor(LONG)
  await measure(page, waiting ? `${tasks} cards, nobody at work` : 'as it is')
  if (waiting) {
    await work(waiting)
    await measure(page, `${tasks} cards, ${running} at work`)
  }
  await shoot(page, 'perf-board')
} finally {
  await browser.close()
  await server.close()
}

/** Puts the tasks on the board and answers those that are to run. */
async function fill() {
  const { squad, repository } = await makeSquad(server, { name: 'Crowd' })
  const members = []
  for (let n = 1; n <= MEMBERS; n++) {
    const config = { agent: 'command', command: AGENT, max_running: Math.ceil(running / MEMBERS) }
    members.push(await server.api('/members', { method: 'POST', body: { squad_id: squad.id, name: `Agent ${n}`, role: 'developer', config } }))
  }
  const made = []
  for (let n = 0; n < tasks; n++) {
    const body = { squad_id: squad.id, repository_id: repository.id, title: `Task ${n} of many, with a title that takes two lines`, status: n % 3 ? 'todo' : 'backlog', labels: n % 4 ? [] : ['crowd'], assignee_id: members[n % members.length].id }
    made.push(await server.api('/tasks', { method: 'POST', body }))
  }
  return made.slice(0, running)
}

/** Starts them and waits until every agent is at work. */
async function work(waiting) {
  // On a machine that is busy with other things the database may refuse for a while.
  for (const { id } of waiting) await until(`task ${id} is started`, () => server.api(`/tasks/${id}/run`, { method: 'POST', body: {} }).catch((error) => /: 409 /.test(error.message)))
  const ids = new Set(waiting.map(({ id }) => id))
  await until('all are at work', async () => {
    const { items } = await server.api(`/executions?squad_id=${waiting[0].squad_id}&status=running&limit=500`)
    const working = items.filter((each) => each.step === 'agent' && ids.has(each.task_id)).length
    process.stderr.write(`\r${working} of ${ids.size} at work `)
    return working === ids.size
  }, { timeout: 300_000 })
}

async function measure(page, name) {
  const size = page.viewportSize()
  const todo = page.getByRole('region', { name: /^Todo/ })
  const place = async () => {
    const { x, y, width, height } = await todo.boundingBox()
    return { x: x + width / 2, y: y + height / 2 }
  }
  const ms = SECONDS * 1000
  const alone = await frames(page, () => page.waitForTimeout(ms))
  const scrolled = await frames(page, async () => scroll(page, await place(), ms))
  await page.mouse.wheel(0, -1_000_000)
  const dragged = await frames(page, () => carry(page, todo.getByRole('article').first(), size, ms))
  console.log(`\n${name}`)
  console.table({ 'left alone': alone, scrolled, dragged })
}
