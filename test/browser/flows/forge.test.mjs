// Work on a forge that is not ours, a real Gitea: its pull request on the page, from
// open over its checks to merged there; and how far a long clone and a long push are.
import assert from 'node:assert/strict'
import { axe, newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test, until } from '../lib/flow.mjs'
import { gitea, SlowLine } from '../lib/gitea.mjs'
import { AGENT, addMember, release } from '../lib/squad.mjs'

const skip = gitea ? false : 'GITEA_URL and GITEA_TOKEN name no Gitea: go test ./test/browser starts one (scripts/counterparts builds it)'
const SLOW = 600_000 // bytes a second: half a minute of clone, for a page that draws late on a busy machine
const SECRET = 'a secret of the hook'
const post = (path, body) => server.api(path, { method: 'POST', body })

let server
let browser
let squad
stage(async (on) => {
  ({ server, browser } = on)
  squad = await post('/squads', { name: 'Far from home' })
  await post('/credentials', { squad_id: squad.id, name: 'tea', kind: 'token', provider: 'gitea', secret: gitea.token })
  await post('/credentials', { squad_id: squad.id, name: 'hook', kind: 'webhook', provider: 'gitea', secret: SECRET })
}, { skip })

async function board() {
  const tab = await newTab(browser)
  await signIn(tab.page, server)
  await tab.page.goto(`${server.url}/squads/${squad.id}/board`)
  return tab
}

test('a pull request on Gitea: link, state, checks, and merged there', { timeout: 240_000, skip }, async () => {
  const name = await gitea.repository('hello')
  const repository = await post('/repositories', { squad_id: squad.id, name, forge: 'gitea', api_url: gitea.url })
  await gitea.api(`/repos/${name}/hooks`, {
    method: 'POST',
    body: { type: 'gitea', active: true, events: ['push', 'status', 'pull_request'], config: { url: `${server.url}/api/v1/webhooks/gitea/${repository.id}`, content_type: 'json', secret: SECRET } },
  })
  const ada = await addMember(server, squad, 'Ada', AGENT)
  const task = await post('/tasks', { squad_id: squad.id, repository_id: repository.id, assignee_id: ada.id, title: 'Greet on Gitea', run: true })
  const { page, context, troubles } = await board()
  const second = await board()
  const card = page.getByRole('article').filter({ hasText: 'Greet on Gitea' })
  await page.getByRole('region', { name: /^In review, 1 tasks/ }).waitFor(LONG)
  await card.getByTitle(/^Pull request 1 is open/).waitFor()

  await second.page.getByRole('link', { name: 'Greet on Gitea' }).click()
  const pull = second.page.getByRole('region', { name: 'Pull request' })
  await pull.getByText('Open', { exact: true }).waitFor()
  assert.equal(await pull.getByRole('link', { name: 'Open on the forge' }).getAttribute('href'), `${gitea.url}/${name}/pulls/1`)

  const { head } = await gitea.api(`/repos/${name}/pulls/1`)
  const check = (state) => gitea.api(`/repos/${name}/statuses/${head.sha}`, { method: 'POST', body: { state, context: 'ci' } })
  for (const [state, mark, words] of [['pending', 'checks run', 'Checks are running'], ['success', 'checks passed', 'All checks passed']]) {
    await check(state)
    await card.getByLabel(mark).waitFor()
    await pull.getByText(words).waitFor()
  }
  await shoot(second.page, 'flow-gitea')
  assert.deepEqual(await axe(second.page), [])

  await gitea.api(`/repos/${name}/pulls/1/merge`, { method: 'POST', body: { Do: 'squash' } })
  await page.getByRole('region', { name: /^Done, 1 tasks/ }).getByRole('link', { name: 'Greet on Gitea' }).waitFor(LONG)
  await card.getByTitle(/^Pull request 1 is merged/).waitFor()
  await pull.getByText('Merged', { exact: true }).waitFor()
  await pull.getByRole('link', { name: 'Open on the forge' }).waitFor()
  assert.equal(await pull.getByRole('button', { name: 'Merge' }).count(), 0)
  assert.equal((await server.api(`/tasks/${task.id}`)).status, 'done')
  assert.deepEqual([...troubles, ...second.troubles], [])
  for (const each of [context, second.context]) await each.close()
})

test('a long clone and a long push show on the card how far they are', { timeout: 240_000, skip }, async () => {
  const name = await gitea.repository('large', 300)
  const line = await SlowLine.to(gitea.url, SLOW)
  const repository = await post('/repositories', { squad_id: squad.id, name, forge: 'gitea', api_url: line.url, url: `${line.url}/${name}.git` })
  const bo = await addMember(server, squad, 'Bo', 'while [ ! -e /home/user/go ]; do sleep 0.1; done; head -c 12000000 /dev/urandom > large.bin; git add .; git commit -qm "feat: bring much"')
  const { page, context, troubles } = await board()
  await page.getByRole('region', { name: /^Backlog/ }).waitFor()
  // What a card says for a moment only is written down as it appears.
  await page.evaluate(() => {
    globalThis.seen = []
    new MutationObserver(() => {
      const text = [...document.querySelectorAll('article')].find((each) => each.textContent.includes('Carry much'))?.textContent
      const step = /(Clone|Push) (\d+)%/.exec(text ?? '')?.[0]
      if (step && globalThis.seen.at(-1) !== step) globalThis.seen.push(step)
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  })
  const task = await post('/tasks', { squad_id: squad.id, repository_id: repository.id, assignee_id: bo.id, title: 'Carry much', run: true })
  const shown = (step, times) => page.waitForFunction(([word, n]) => globalThis.seen.filter((each) => each.startsWith(word)).length >= n, [step, times], LONG)
  await shown('Clone', 2)
  await shoot(page, 'flow-clone')
  line.bytesPerSecond = Infinity // seen: the rest may be quick
  const { execution_id: execution } = await server.api(`/tasks/${task.id}`)
  await until('the agent waits', async () => (await server.api(`/executions/${execution}`)).step === 'agent')
  line.bytesPerSecond = SLOW
  await release(server, execution)
  await shown('Push', 1)
  line.bytesPerSecond = Infinity
  await page.getByRole('region', { name: /^In review, 1 tasks/ }).getByRole('link', { name: 'Carry much' }).waitFor(LONG)
  assert.deepEqual(troubles, [])
  await context.close()
  line.close()
})
