// What a person needs to know of a flow that failed on a machine they cannot see.
import { shoot } from './browser.mjs'

const ANSWER_MS = 8_000
const TEXT_CHARS = 2_500
const LOG_LINES = 40
const ROWS = 40

/** Every page with its text, the open work, and the end of the server's log. */
export async function report({ name, servers, pages }) {
  const parts = [`===== ${name}: failed. What there was: =====`]
  for (const [i, page] of pages.entries()) parts.push(await within(pageOf(page, `failed-${slug(name)}-${i + 1}`)))
  for (const server of servers) {
    parts.push(await within(workOf(server)))
    parts.push(`--- the last lines of the server's log\n${server.log.replaceAll(/code=\S+/g, 'code=…').trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`)
  }
  return `${parts.join('\n')}\n===== end of ${name} =====`
}

const slug = (words) => words.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').slice(0, 60)

/** A page or a server that hangs costs its own part only. */
async function within(part) {
  let timer
  const late = new Promise((resolve) => { timer = setTimeout(() => resolve(`--- no answer after ${ANSWER_MS} ms`), ANSWER_MS) })
  const answer = await Promise.race([part.catch((error) => `--- no answer: ${error.message}`), late])
  clearTimeout(timer)
  return answer
}

async function pageOf(page, picture) {
  const text = await page.evaluate(() => document.body?.innerText ?? '')
  const shown = text.replaceAll(/\n\s*\n/g, '\n').slice(0, TEXT_CHARS)
  await shoot(page, picture)
  return `--- ${page.url()} (screenshots/${picture}.png)\n${shown}`
}

async function workOf(server) {
  const squads = (await server.api('/squads')).items
  const lines = []
  for (const { id, name } of squads) {
    const [tasks, executions] = await Promise.all([server.api(`/tasks?squad_id=${id}`), server.api(`/executions?squad_id=${id}`)])
    const open = tasks.items.filter((task) => task.status !== 'done' || task.flag)
    lines.push(`squad ${name}: ${tasks.items.length} tasks, ${open.length} of them open`)
    for (const task of open) {
      lines.push(`  ${facts(`#${task.number} ${task.title}`, task, ['status', 'flag', 'cause'])}`)
      for (const each of executions.items.filter(({ task_id }) => task_id === task.id)) {
        lines.push(`    ${facts(`attempt ${each.attempt}, turn ${each.turn}`, each, ['status', 'step', 'percent', 'liveness', 'error_code', 'error', 'sandbox_id'])}`)
      }
    }
  }
  const { items: sandboxes } = await server.api('/sandboxes')
  for (const each of sandboxes) lines.push(facts(`sandbox ${each.id}`, each, ['status', 'template', 'task_id', 'pooled', 'error']))
  const more = lines.length > ROWS ? `\n… and ${lines.length - ROWS} lines more` : ''
  return `--- the work, as ${server.url} tells it\n${lines.slice(0, ROWS).join('\n')}${more}`
}

const facts = (what, of, keys) => [what, ...keys.filter((key) => of[key]).map((key) => `${key}=${typeof of[key] === 'object' ? JSON.stringify(of[key]) : of[key]}`)].join(' · ')
