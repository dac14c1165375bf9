import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, SandboxNotFoundError } from 'e2b'
import { boxed, until, withBox } from './box.mjs'

async function collect(opts) {
  const out = []
  const pages = Sandbox.list(opts)
  while (pages.hasNext) out.push(...(await pages.nextItems()))
  return out
}

test('information, list, filters, pages', async () => {
  const mark = `run ${Date.now()} & co`
  const made = await Promise.all([0, 1, 2].map((n) => Sandbox.create({ metadata: { mark, n: `${n}` }, timeoutMs: 120_000 })))
  try {
    const info = await made[0].getInfo()
    assert.equal(info.sandboxId, made[0].sandboxId)
    assert.equal(info.metadata.mark, mark)
    assert.equal(info.state, 'running')
    assert.ok(info.cpuCount >= 1 && info.memoryMB >= 128 && info.endAt > info.startedAt)
    assert.equal((await collect({ query: { metadata: { mark } } })).length, 3)
    assert.equal((await collect({ query: { metadata: { mark }, state: ['running'] }, limit: 2 })).length, 3)
    assert.equal((await collect({ query: { metadata: { mark, n: '1' } } }))[0].sandboxId, made[1].sandboxId)
    assert.equal((await collect({ query: { metadata: { mark: 'other' } } })).length, 0)
    await made[2].pause()
    assert.deepEqual((await collect({ query: { metadata: { mark }, state: ['paused'] } })).map((s) => s.sandboxId), [made[2].sandboxId])
  } finally {
    await Promise.all(made.map((s) => s.kill()))
  }
})

test('kill: then it is not running and not found', async () => {
  const sbx = await Sandbox.create()
  assert.equal(await sbx.isRunning(), true)
  assert.equal(await sbx.kill(), true)
  assert.equal(await sbx.kill(), false)
  assert.equal(await sbx.isRunning(), false)
  await assert.rejects(Sandbox.getInfo(sbx.sandboxId), SandboxNotFoundError)
  await assert.rejects(Sandbox.connect(sbx.sandboxId), SandboxNotFoundError)
})

test('time to live: set, then it ends', boxed(async (sbx) => {
  await sbx.setTimeout(100_000)
  const long = await sbx.getInfo()
  assert.ok(long.endAt - Date.now() > 90_000)
  await sbx.setTimeout(1000)
  await until(async () => !(await sbx.isRunning()))
}))

test('connect extends and never shortens', boxed(async (sbx) => {
  const before = (await sbx.getInfo()).endAt
  const same = await Sandbox.connect(sbx.sandboxId, { timeoutMs: 5000 })
  assert.equal((await same.getInfo()).endAt.getTime(), before.getTime())
  await Sandbox.connect(sbx.sandboxId, { timeoutMs: 600_000 })
  assert.ok((await sbx.getInfo()).endAt > before)
}))

test('pause and connect: files, memory and processes go on', boxed(async (sbx) => {
  await sbx.files.write('kept.txt', 'kept')
  const cmd = await sbx.commands.run('i=0; while true; do i=$((i+1)); echo $i > count; sleep 0.05; done', { background: true, timeoutMs: 0 })
  await until(() => sbx.files.exists('count'))
  assert.equal(await sbx.pause(), true)
  assert.equal(await sbx.pause(), false)
  assert.equal((await sbx.getInfo()).state, 'paused')
  assert.equal(await sbx.isRunning(), false)
  const again = await Sandbox.connect(sbx.sandboxId)
  assert.equal(await again.files.read('kept.txt'), 'kept')
  assert.ok((await again.commands.list()).some((p) => p.pid === cmd.pid))
  const count = Number(await again.files.read('count'))
  await until(async () => Number(await again.files.read('count')) > count)
  assert.equal((await sbx.commands.run('echo old object works')).stdout, 'old object works\n')
  assert.equal(await again.commands.kill(cmd.pid), true)
}))

test('pause again and again keeps later changes', boxed(async (sbx) => {
  for (const n of [1, 2, 3]) {
    await sbx.files.write(`round-${n}`, `${n}`)
    await sbx.pause()
    await sbx.connect()
  }
  const names = (await sbx.files.list('.')).map((e) => e.name).filter((n) => n.startsWith('round-'))
  assert.deepEqual(names.sort(), ['round-1', 'round-2', 'round-3'])
}))

test('pause without memory keeps files and ends processes', boxed(async (sbx) => {
  await sbx.files.write('kept.txt', 'kept')
  const cmd = await sbx.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  await sbx.pause({ keepMemory: false })
  await sbx.connect()
  assert.equal(await sbx.files.read('kept.txt'), 'kept')
  assert.ok(!(await sbx.commands.list()).some((p) => p.pid === cmd.pid))
  assert.equal((await sbx.commands.run('pgrep -c -f "sleep 60[0]" || true')).stdout.trim(), '0')
}))

test('reboot on connect drops the memory of a pause that kept it', boxed(async (sbx) => {
  await sbx.files.write('kept.txt', 'kept')
  await sbx.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  await sbx.pause()
  const again = await Sandbox.connect(sbx.sandboxId, { onResume: 'reboot' })
  assert.equal(await again.files.read('kept.txt'), 'kept')
  assert.equal((await again.commands.run('pgrep -c -f "sleep 60[0]" || true')).stdout.trim(), '0')
}))

test('auto pause at the end of life, resume by traffic', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause', autoResume: true } })
  try {
    await until(async () => (await sbx.getInfo()).state === 'paused')
    assert.equal((await sbx.commands.run('echo woken')).stdout, 'woken\n')
    assert.equal((await sbx.getInfo()).state, 'running')
  } finally {
    await sbx.kill()
  }
})

test('metrics', boxed(async (sbx) => {
  const metrics = await until(async () => {
    const m = await sbx.getMetrics()
    return m.length > 0 && m
  })
  assert.ok(metrics[0].memUsed > 0 && metrics[0].memTotal > metrics[0].memUsed && metrics[0].cpuCount >= 1)
  assert.ok(metrics[0].diskTotal > 0 && metrics[0].timestamp instanceof Date)
}))

test('snapshots: name, start from, list, delete', boxed(async (sbx) => {
  await sbx.files.write('state.txt', 'one')
  const name = `snap-${Date.now()}`
  const snap = await sbx.createSnapshot({ name })
  await sbx.files.write('state.txt', 'two')
  assert.equal(await sbx.files.read('state.txt'), 'two')
  await withBox({ template: snap.snapshotId }, async (other) => {
    assert.equal(await other.files.read('state.txt'), 'one')
    assert.equal((await other.commands.run('echo $E2B_SANDBOX_ID')).stdout.trim(), other.sandboxId)
  })
  const list = await sbx.listSnapshots().nextItems()
  assert.deepEqual(list.map((s) => s.snapshotId), [snap.snapshotId])
  assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), true)
  assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), false)
}))

test('fork: each with files and processes of its own', boxed(async (sbx) => {
  await sbx.files.write('who', 'parent')
  const cmd = await sbx.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  const forks = await sbx.fork({ count: 3, timeoutMs: 60_000 })
  try {
    assert.equal(forks.length, 3)
    for (const [i, f] of forks.entries()) {
      assert.ok(f instanceof Sandbox, `${f}`)
      assert.equal(await f.files.read('who'), 'parent')
      assert.ok((await f.commands.list()).some((p) => p.pid === cmd.pid))
      await f.files.write('who', `fork ${i}`)
    }
    for (const [i, f] of forks.entries()) assert.equal(await f.files.read('who'), `fork ${i}`)
    assert.equal(await sbx.files.read('who'), 'parent')
    assert.equal((await forks[0].commands.run('echo $E2B_SANDBOX_ID')).stdout.trim(), forks[0].sandboxId)
  } finally {
    await Promise.all(forks.map((f) => f.kill()))
  }
}))

test('a kill cuts streams at once', async () => {
  const sbx = await Sandbox.create()
  const cmd = await sbx.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  const ended = assert.rejects(cmd.wait())
  await sbx.kill()
  await ended
})
