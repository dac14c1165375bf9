// The squad and its machines, managed on the page: repositories, people,
// templates, a sandbox with a shell, and a server inside it seen from outside.
import assert from 'node:assert/strict'
import { asks } from '../lib/asks.mjs'
import { axe, newTab, shoot, signIn } from '../lib/browser.mjs'
import { LONG, stage, test, until } from '../lib/flow.mjs'
import { makeSquad } from '../lib/squad.mjs'

let server
let browser
let made
stage(async (on) => {
  ({ server, browser } = on)
  made = await makeSquad(server, { name: 'Managers' })
})

async function open(path) {
  const tab = await newTab(browser)
  await signIn(tab.page, server)
  await tab.page.goto(`${server.url}/squads/${made.squad.id}${path}`)
  return tab
}

test('repositories are checked and edited, people get roles, templates are built', { timeout: 240_000 }, async () => {
  const { page, context, troubles } = await open('/settings?tab=repositories')
  await page.getByRole('button', { name: `Check ${made.repository.name}` }).click()
  await page.getByRole('region', { name: 'What the check found' }).getByLabel('ok').first().waitFor(LONG)
  await page.getByRole('button', { name: `What to do with ${made.repository.name}` }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  await page.getByRole('textbox', { name: 'Check before a push' }).fill('true')
  await shoot(page, 'flow-repository')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('checks with true').waitFor()
  assert.equal((await server.api(`/repositories/${made.repository.id}`)).policy.check_command, 'true')

  await page.getByRole('tab', { name: 'People' }).click()
  await page.getByRole('button', { name: 'Add a person' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Vera')
  await page.getByRole('combobox', { name: 'Role' }).selectOption('viewer')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  const link = await page.getByRole('textbox', { name: 'Sign-in link' }).inputValue()
  await page.keyboard.press('Escape')
  await page.getByRole('combobox', { name: 'Role of Vera' }).selectOption('member')
  await until('Vera is a member', async () => (await server.api(`/squads/${made.squad.id}/users`)).items.some((each) => each.name === 'Vera' && each.role === 'member'))
  const vera = await newTab(browser)
  await vera.page.goto(link)
  await vera.page.getByRole('heading', { name: 'Board' }).waitFor()
  await vera.context.close()
  await asks(page, { open: () => page.getByRole('button', { name: 'Take Vera out' }).click(), title: 'Take Vera out of the squad?', lost: /no longer see its board/, verb: 'Take out' })
  await page.getByRole('combobox', { name: 'Role of Vera' }).waitFor({ state: 'hidden' })
  assert.deepEqual(await axe(page), [])

  await page.getByRole('tab', { name: 'Templates' }).click()
  await page.getByRole('button', { name: 'Build a template' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('marked')
  await page.getByRole('textbox', { name: 'Commands' }).fill('echo made by the page > /etc/marked')
  await page.getByRole('button', { name: 'Build', exact: true }).click()
  await page.getByRole('listitem').filter({ hasText: 'marked' }).getByText('ready', { exact: true }).waitFor(LONG)
  await shoot(page, 'flow-template')
  assert.deepEqual(await axe(page), [])
  assert.deepEqual(troubles, [])
  await context.close()
})

// perl-base is on every Debian; the answer tells which cookies arrived.
const ECHO = `perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8123, Listen => 5, ReuseAddr => 1) or die; while (my $c = $s->accept) { my $k = "none"; while (<$c>) { $k = $1 if /^cookie: (.*?)\\r/i; last if /^\\r?$/ } my $b = "<h1>Inside</h1><p id=k>cookies: $k</p>"; print $c "HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\nConnection: close\\r\\nContent-Length: ", length $b, "\\r\\n\\r\\n$b"; close $c }' >/dev/null 2>&1 &`

test('a sandbox is made, a shell follows the window, and a port is seen from an origin of its own', { timeout: 240_000 }, async () => {
  const { page, context, troubles } = await open('/sandboxes')
  await page.getByRole('button', { name: 'New sandbox' }).click()
  await page.getByRole('combobox', { name: 'Template' }).selectOption('marked')
  await page.getByRole('button', { name: 'Make it' }).click()
  const row = page.getByRole('listitem').filter({ hasText: 'local/marked' })
  await row.getByText('running').waitFor(LONG)
  const menu = (item) => row.getByRole('button', { name: 'What to do with this sandbox' }).click().then(() => page.getByRole('menuitem', { name: item }).click())

  await menu('Open a shell')
  const shell = page.getByTestId('shell')
  await shell.getByText(/[$#]/).first().waitFor(LONG)
  await shell.locator('textarea:focus').waitFor({ state: 'attached' })
  const columns = async (word) => {
    await page.keyboard.type(`clear; echo ${word}-$(stty size | tr ' ' x)\n`)
    await shell.getByText(new RegExp(`${word}-\\d+x\\d+`)).first().waitFor()
    return Number(new RegExp(`${word}-\\d+x(\\d+)`).exec(await shell.innerText())?.[1])
  }
  await page.keyboard.type('cat /etc/marked\n')
  await shell.getByText('made by the page').first().waitFor()
  const wide = await columns('wide')
  await page.setViewportSize({ width: 620, height: 800 })
  let tries = 0
  await until('the shell inside is as narrow as the window', async () => {
    const narrow = await columns(`narrow${++tries}`) // what is typed may overtake the new size
    return narrow > 10 && narrow < wide
  })
  await page.keyboard.press('Escape') // belongs to the programs inside
  await page.getByRole('button', { name: 'Close' }).click()
  await page.setViewportSize({ width: 1440, height: 860 })

  await menu('Pause')
  await row.getByText('paused').waitFor(LONG)
  await menu('Resume')
  await row.getByText('running').waitFor(LONG)
  await menu('Fork')
  await row.getByText('running').nth(1).waitFor(LONG)
  const { items: [sandbox, copy] } = await server.api('/sandboxes?template=marked&status=running')
  await server.api(`/sandboxes/${copy.id}`, { method: 'DELETE' })
  await row.nth(1).waitFor({ state: 'hidden', ...LONG })
  await server.api(`/sandboxes/${sandbox.id}/execute`, { method: 'POST', body: { command: ECHO } })
  await menu('Open a port')
  await page.getByRole('spinbutton', { name: 'Port' }).fill('8123')
  const [preview] = await Promise.all([context.waitForEvent('page'), page.getByRole('button', { name: 'Open', exact: true }).click()])
  await preview.getByRole('heading', { name: 'Inside' }).waitFor(LONG)
  assert.notEqual(new URL(preview.url()).origin, new URL(page.url()).origin)
  assert.equal(await preview.locator('#k').innerText(), 'cookies: none')
  assert.equal(await preview.evaluate(() => globalThis.opener), null)
  await preview.close()

  await asks(page, { open: () => menu('Destroy…'), title: 'Destroy this sandbox?', lost: /files and processes are gone/, verb: 'Destroy' })
  await row.waitFor({ state: 'hidden', ...LONG })

  await page.goto(`${server.url}/squads/${made.squad.id}/settings?tab=templates`)
  await asks(page, { open: () => page.getByRole('button', { name: 'Delete marked' }).click(), title: 'Delete marked?', lost: /new sandboxes cannot start from it/, verb: 'Delete' })
  await page.getByRole('button', { name: 'Delete marked' }).waitFor({ state: 'hidden' })
  assert.equal((await server.api('/templates')).items.some((each) => each.name === 'marked'), false)
  assert.deepEqual(troubles, [])
  await context.close()
})

test('members, secrets, budgets and tokens are kept on the page; secrets are never read back', { timeout: 240_000 }, async () => {
  const { page, context, troubles } = await open('/settings')
  const read = async () => (await server.api(`/members?squad_id=${made.squad.id}`)).items.find((each) => each.name === 'Cleo')
  await page.getByRole('button', { name: 'Add a member' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Cleo')
  await dialog.getByRole('combobox', { name: 'Role' }).fill('reviewer')
  await dialog.getByRole('combobox', { name: 'Agent' }).selectOption('command')
  await dialog.getByRole('textbox', { name: 'Command' }).fill('echo one\necho two')
  await dialog.getByRole('spinbutton', { name: 'US dollars a day' }).fill('3')
  await dialog.getByRole('button', { name: 'Add' }).click()
  const row = page.getByRole('listitem').filter({ hasText: 'Cleo' })
  await row.getByText('a script of 2 lines').waitFor()
  const cleo = await read()
  assert.equal(cleo.config.command, 'echo one\necho two')
  assert.equal(cleo.config.budget.day_usd, 3)
  const menu = (item) => row.getByRole('button', { name: 'What to do with Cleo' }).click().then(() => page.getByRole('menuitem', { name: item }).click())
  await menu('Send on leave')
  await row.getByText('inactive').waitFor()
  await asks(page, { open: () => menu('Remove…'), title: 'Remove Cleo?', lost: /prompt and limits are gone/, verb: 'Remove' })
  await row.waitFor({ state: 'hidden' })
  assert.equal(await read(), undefined)

  await page.getByRole('tab', { name: 'Credentials' }).click()
  await page.getByRole('button', { name: 'Add a credential' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('forge')
  await page.getByRole('textbox', { name: 'Secret' }).fill('never-to-be-seen-again')
  const answers = []
  page.on('response', async (answer) => { if (answer.url().includes('/credentials')) answers.push(await answer.text().catch(() => '')) })
  await page.getByRole('button', { name: 'Seal it' }).click()
  await page.getByRole('listitem').filter({ hasText: 'forge' }).waitFor()
  assert.equal(await page.getByText('never-to-be-seen-again').count(), 0)
  assert.ok(answers.length > 0 && answers.every((text) => !text.includes('never-to-be-seen-again')))
  await asks(page, { open: () => page.getByRole('button', { name: 'Delete forge' }).click(), title: 'Delete forge?', lost: /secret cannot be brought back/, verb: 'Delete' })
  await page.getByText('No credentials').waitFor()

  const spare = await server.api('/repositories', { method: 'POST', body: { squad_id: made.squad.id, name: 'spare', forge: 'local' } })
  await page.getByRole('tab', { name: 'Repositories' }).click()
  const ask = () => page.getByRole('button', { name: 'What to do with spare' }).click().then(() => page.getByRole('menuitem', { name: 'Remove…' }).click())
  await asks(page, { open: ask, title: 'Remove spare?', lost: /with all its branches and pull requests, is deleted/, verb: 'Remove' })
  await page.getByRole('button', { name: 'What to do with spare' }).waitFor({ state: 'hidden' })
  assert.equal((await server.api(`/repositories?squad_id=${made.squad.id}`)).items.some((each) => each.id === spare.id), false)

  await page.getByRole('tab', { name: 'Budget and policy' }).click()
  await page.getByRole('spinbutton', { name: 'A task', exact: true }).fill('4.5')
  await page.getByRole('textbox', { name: 'Domains' }).fill('*.example.org\nexample.com')
  await page.getByRole('button', { name: 'Save' }).click()
  await until('budget and policy are kept', async () => {
    const { config } = await server.api(`/squads/${made.squad.id}`)
    return config.budget?.task_usd === 4.5 && JSON.stringify(config).includes('*.example.org')
  })

  await page.goto(`${server.url}/system`)
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('robot')
  await page.getByRole('button', { name: 'Make it' }).click()
  const secret = await page.getByRole('textbox', { name: 'The new token' }).inputValue()
  const me = () => fetch(`${server.url}/api/v1/me`, { headers: { Authorization: `Bearer ${secret}` } }).then((answer) => answer.status)
  assert.equal(await me(), 200)
  await page.keyboard.press('Escape')
  await asks(page, { open: () => page.getByRole('button', { name: 'Revoke robot' }).click(), title: 'Revoke robot?', lost: /is refused from now on/, verb: 'Revoke' })
  await page.getByRole('button', { name: 'Revoke robot' }).waitFor({ state: 'hidden' })
  assert.equal(await me(), 401)
  await page.reload()
  await page.getByRole('region', { name: 'Audit log', exact: true }).getByText('token.delete').or(page.getByText('token.revoke')).first().waitFor()
  assert.deepEqual(troubles, [])
  await context.close()
})
