import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandExitError, InvalidArgumentError, TimeoutError } from 'e2b'
import { boxed, until } from './box.mjs'

test('output, error output, user, folder', boxed(async (sbx) => {
  const r = await sbx.commands.run('echo hello; id -un; pwd; echo err >&2')
  assert.equal(r.stdout, 'hello\nuser\n/home/user\n')
  assert.equal(r.stderr, 'err\n')
  assert.equal(r.exitCode, 0)
}))

test('a failing command is a CommandExitError', boxed(async (sbx) => {
  await assert.rejects(sbx.commands.run('echo out; echo bad >&2; exit 7'), (e) => {
    assert.ok(e instanceof CommandExitError)
    assert.equal(e.exitCode, 7)
    assert.equal(e.stdout, 'out\n')
    assert.equal(e.stderr, 'bad\n')
    return true
  })
}))

test('environment, folder, user', boxed(async (sbx) => {
  const r = await sbx.commands.run('echo "$FOO $GLOBAL"; pwd; id -un', { envs: { FOO: 'a b' }, cwd: '/tmp', user: 'root' })
  assert.equal(r.stdout, 'a b everywhere\n/tmp\nroot\n')
  assert.equal((await sbx.commands.run('echo $E2B_SANDBOX_ID')).stdout.trim(), sbx.sandboxId)
  assert.equal((await sbx.commands.run('sudo id -un')).stdout, 'root\n')
  await assert.rejects(sbx.commands.run('true', { cwd: '/does/not/exist' }), InvalidArgumentError)
}, { envs: { GLOBAL: 'everywhere' } }))

test('output is streamed as it comes', boxed(async (sbx) => {
  const seen = []
  const r = await sbx.commands.run('for i in 1 2 3; do echo $i; sleep 0.1; done', { onStdout: (d) => { seen.push(d) } })
  assert.equal(seen.join(''), '1\n2\n3\n')
  assert.ok(seen.length >= 2, `in ${seen.length} parts`)
  assert.equal(r.stdout, '1\n2\n3\n')
}))

test('large and multi-byte output is whole', boxed(async (sbx) => {
  const r = await sbx.commands.run(`python3 -c "print('ä€😀' * 300000)"`)
  assert.equal(r.stdout.length, 'ä€😀'.length * 300000 + 1)
  assert.equal(r.stdout.slice(0, 4), 'ä€😀')
}))

test('background: list, connect, kill', boxed(async (sbx) => {
  const cmd = await sbx.commands.run('echo ready; sleep 60', { background: true })
  const procs = await sbx.commands.list()
  assert.ok(procs.some((p) => p.pid === cmd.pid && p.args.includes('echo ready; sleep 60')))
  const again = await sbx.commands.connect(cmd.pid)
  assert.equal(await sbx.commands.kill(cmd.pid), true)
  await assert.rejects(again.wait(), CommandExitError)
  await until(async () => !(await sbx.commands.list()).some((p) => p.pid === cmd.pid))
  assert.equal(await sbx.commands.kill(cmd.pid), false)
}))

test('a late reader still gets the exit', boxed(async (sbx) => {
  const cmd = await sbx.commands.run('sleep 0.3; exit 3', { background: true })
  await cmd.disconnect()
  const again = await sbx.commands.connect(cmd.pid)
  await assert.rejects(again.wait(), (e) => e.exitCode === 3)
}))

test('stdin: send and close', boxed(async (sbx) => {
  const cmd = await sbx.commands.run('cat', { background: true, stdin: true })
  await sbx.commands.sendStdin(cmd.pid, 'first\n')
  await sbx.commands.sendStdin(cmd.pid, 'second\n')
  await sbx.commands.closeStdin(cmd.pid)
  assert.equal((await cmd.wait()).stdout, 'first\nsecond\n')
}))

test('a timeout ends the command and its children', boxed(async (sbx) => {
  const started = Date.now()
  await assert.rejects(sbx.commands.run('sleep 987 & sleep 988', { timeoutMs: 700 }), TimeoutError)
  assert.ok(Date.now() - started < 30_000)
  await until(async () => {
    const r = await sbx.commands.run('pgrep -f "sleep 98[78]" | wc -l')
    return r.stdout.trim() === '0'
  })
}))

test('many at once', boxed(async (sbx) => {
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => sbx.commands.run(`echo ${i}`)))
  assert.deepEqual(all.map((r) => r.stdout.trim()), Array.from({ length: 20 }, (_, i) => `${i}`))
}))
