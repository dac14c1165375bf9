// The SDK before create and connect moved to /v2: the older paths.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, SandboxNotFoundError } from 'e2b-older'
import * as newer from 'e2b'

test('an older SDK: create, run, files, pause, connect, list, kill', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 60_000, metadata: { old: 'yes' } })
  try {
    assert.equal((await sbx.commands.run('echo old')).stdout, 'old\n')
    await sbx.files.write('f', 'content')
    assert.equal(await sbx.files.read('f'), 'content')
    const again = await Sandbox.connect(sbx.sandboxId, { timeoutMs: 30_000 })
    assert.equal((await again.commands.run('cat f')).stdout, 'content')
    await sbx.pause()
    const resumed = await Sandbox.connect(sbx.sandboxId, { timeoutMs: 60_000 })
    assert.equal(await resumed.files.read('f'), 'content')
    const list = await Sandbox.list({ query: { metadata: { old: 'yes' } } }).nextItems()
    assert.ok(list.some((s) => s.sandboxId === sbx.sandboxId))
    const shared = await newer.Sandbox.connect(sbx.sandboxId)
    assert.equal((await shared.commands.run('echo both')).stdout, 'both\n')
  } finally {
    assert.equal(await sbx.kill(), true)
  }
  await assert.rejects(Sandbox.connect(sbx.sandboxId), SandboxNotFoundError)
})

test('an older SDK: signed addresses', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 60_000, secure: true })
  try {
    await sbx.files.write('s.txt', 'signed')
    const res = await fetch(await sbx.downloadUrl('s.txt'))
    assert.equal(await res.text(), 'signed')
  } finally {
    await sbx.kill()
  }
})
