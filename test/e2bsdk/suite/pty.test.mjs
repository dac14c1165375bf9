import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boxed, until } from './box.mjs'

const text = (chunks) => Buffer.concat(chunks.map((c) => Buffer.from(c))).toString()

test('a terminal: input, size, resize, end', boxed(async (sbx) => {
  const out = []
  const pty = await sbx.pty.create({ cols: 81, rows: 24, onData: (d) => { out.push(d) }, timeoutMs: 0 })
  await sbx.pty.sendInput(pty.pid, Buffer.from('echo $TERM-$((6*7)); stty size\n'))
  await until(() => text(out).includes('xterm-256color-42') && text(out).includes('24 81'))
  await sbx.pty.resize(pty.pid, { cols: 100, rows: 30 })
  await sbx.pty.sendInput(pty.pid, Buffer.from('stty size\n'))
  await until(() => text(out).includes('30 100'))
  await sbx.pty.sendInput(pty.pid, Buffer.from('exit 0\n'))
  assert.equal((await pty.wait()).exitCode, 0)
}))

test('a terminal: join and kill', boxed(async (sbx) => {
  const pty = await sbx.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 0 })
  await pty.disconnect()
  const out = []
  const again = await sbx.pty.connect(pty.pid, { onData: (d) => { out.push(d) } })
  await sbx.pty.sendInput(pty.pid, Buffer.from('echo back-$((1+1))\n'))
  await until(() => text(out).includes('back-2'))
  assert.equal(await sbx.pty.kill(pty.pid), true)
  await assert.rejects(again.wait())
  assert.equal(await sbx.pty.kill(pty.pid), false)
}))
