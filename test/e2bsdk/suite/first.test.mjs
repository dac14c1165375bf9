import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from 'e2b'

test('create and run', async () => {
  const sbx = await Sandbox.create()
  try {
    const r = await sbx.commands.run('echo hello; id -un; pwd; echo err >&2')
    assert.equal(r.stdout, 'hello\nuser\n/home/user\n')
    assert.equal(r.stderr, 'err\n')
  } finally {
    assert.equal(await sbx.kill(), true)
  }
})
