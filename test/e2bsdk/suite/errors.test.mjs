import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandExitError, NotFoundError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError } from 'e2b'
import { api, boxed } from './box.mjs'

const post = (path, body) => fetch(api + path, { method: 'POST', headers: { 'X-API-Key': process.env.E2B_API_KEY, 'Content-Type': 'application/json' }, body })

test('create: unknown template, impossible time', async () => {
  await assert.rejects(Sandbox.create('no-such-template'), (e) => e instanceof SandboxError && e.statusCode === 404)
  await assert.rejects(Sandbox.create({ timeoutMs: 1e12 }), (e) => e instanceof SandboxError && e.statusCode === 400)
})

test('bodies that make no sense are 400 with a JSON code', async () => {
  for (const body of ['', '{', '[]', '{}', '{"templateID":7}', '{"templateID":"base","timeout":-5}']) {
    const res = await post('/v2/sandboxes', body)
    assert.equal(res.status, 400, body)
    assert.equal((await res.json()).code, 400)
  }
  assert.equal((await post('/v2/sandboxes', JSON.stringify({ templateID: 'x'.repeat(3 << 20) }))).status, 413)
})

test('verbs on a sandbox that is gone', async () => {
  const sbx = await Sandbox.create()
  await sbx.kill()
  await assert.rejects(sbx.setTimeout(1000), SandboxNotFoundError)
  await assert.rejects(sbx.pause(), SandboxNotFoundError)
  await assert.rejects(sbx.getInfo(), SandboxNotFoundError)
  await assert.rejects(sbx.getMetrics(), SandboxNotFoundError)
  await assert.rejects(sbx.createSnapshot(), SandboxNotFoundError)
  await assert.rejects(sbx.fork(), SandboxNotFoundError)
  await assert.rejects(sbx.commands.run('true'), NotFoundError)
  await assert.rejects(sbx.files.read('x'), TimeoutError)
  await assert.rejects(sbx.files.list('.'), TimeoutError)
})

test('commands: unknown pid, failure, kill', boxed(async (sbx) => {
  await assert.rejects(sbx.commands.connect(99999), NotFoundError)
  assert.equal(await sbx.commands.kill(99999), false)
  await assert.rejects(sbx.commands.run('exit 1'), CommandExitError)
}))

test('volumes and secrets are refused plainly', async () => {
  const res = await post('/volumes', '{"name":"v"}')
  assert.equal(res.status, 501)
  assert.equal((await res.json()).code, 501)
})
