import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AuthenticationError, Sandbox, SandboxNotFoundError } from 'e2b'
import { api, boxed, preview } from './box.mjs'

test('envd asks for the token', boxed(async (sbx) => {
  const call = (headers) => fetch(`${api}/filesystem.Filesystem/ListDir`, {
    method: 'POST', headers: { 'Content-Type': 'application/json', 'E2b-Sandbox-Id': sbx.sandboxId, ...headers }, body: '{"path":"/"}',
  })
  assert.equal((await call({})).status, 401)
  assert.equal((await call({ 'X-Access-Token': 'wrong' })).status, 401)
  assert.equal((await call({ 'X-API-Key': process.env.E2B_API_KEY })).status, 401)
  const token = (await Sandbox.connect(sbx.sandboxId)).envdAccessToken ?? sbx.envdAccessToken
  assert.equal((await call({ 'X-Access-Token': token })).status, 200)
}))

test('signed addresses: read, write, expiry, no stranger', boxed(async (sbx) => {
  await sbx.files.write('page.html', '<script>1</script>')
  const url = await sbx.downloadUrl('page.html')
  assert.ok(url.startsWith(api))
  let res = await fetch(url)
  assert.equal(res.status, 200)
  assert.equal(await res.text(), '<script>1</script>')
  assert.equal(res.headers.get('content-security-policy'), 'sandbox')
  assert.equal((await fetch(url.replace('page.html', 'other.html'))).status, 502)
  assert.equal((await fetch(url.replace(/signature=v1_.../, 'signature=v1_AAA'))).status, 502)
  const up = await sbx.uploadUrl('up.txt', { useSignatureExpiration: 60 })
  const form = new FormData()
  form.append('file', new Blob(['uploaded']), 'up.txt')
  res = await fetch(up, { method: 'POST', body: form })
  assert.equal(res.status, 200)
  assert.equal(await sbx.files.read('up.txt'), 'uploaded')
  const late = await sbx.downloadUrl('page.html', { useSignatureExpiration: -10 })
  res = await fetch(late)
  assert.equal(res.status, 401)
  assert.match(await res.text(), /signature is already expired/)
  const byName = new URL(url)
  const r = await preview(sbx.getHost(49983), byName.pathname + byName.search)
  assert.equal(r.status, 200)
}))

test('Range and paths that climb', boxed(async (sbx) => {
  await sbx.files.write('r.txt', '0123456789')
  const url = await sbx.downloadUrl('r.txt')
  const res = await fetch(url, { headers: { Range: 'bytes=2-4', 'Accept-Encoding': 'identity' } })
  assert.equal(res.status, 206)
  assert.equal(await res.text(), '234')
  await sbx.commands.run('ln -s /etc/shadow shadow')
  await assert.rejects(sbx.files.read('../../../../root/.ssh/id_rsa'))
  const passwd = await sbx.files.read('../../../../etc/passwd')
  assert.match(passwd, /^user:/m)
  assert.doesNotMatch(passwd, /nonexistent-host-user/)
}))

test("another key finds nothing of one's own", boxed(async (sbx) => {
  const other = { apiKey: process.env.OTHER_API_KEY }
  await assert.rejects(Sandbox.getInfo(sbx.sandboxId, other), SandboxNotFoundError)
  await assert.rejects(Sandbox.connect(sbx.sandboxId, other), SandboxNotFoundError)
  assert.equal(await Sandbox.kill(sbx.sandboxId, other), false)
  await assert.rejects(Sandbox.pause(sbx.sandboxId, other), SandboxNotFoundError)
  const list = await Sandbox.list(other).nextItems()
  assert.ok(!list.some((s) => s.sandboxId === sbx.sandboxId))
  assert.equal(await sbx.isRunning(), true)
}))

test('a wrong key is an AuthenticationError', async () => {
  await assert.rejects(Sandbox.create({ apiKey: 'e2b_00' }), AuthenticationError)
})
