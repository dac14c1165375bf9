import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileNotFoundError, FileType, FilesystemEventType, InvalidArgumentError } from 'e2b'
import { boxed, until } from './box.mjs'

test('write and read in all forms', boxed(async (sbx) => {
  const info = await sbx.files.write('notes/a.txt', 'hello ä')
  assert.equal(info.path, '/home/user/notes/a.txt')
  assert.equal(info.name, 'a.txt')
  assert.equal(await sbx.files.read('notes/a.txt'), 'hello ä')
  assert.deepEqual(Buffer.from(await sbx.files.read('notes/a.txt', { format: 'bytes' })).toString(), 'hello ä')
  assert.equal(await (await sbx.files.read('notes/a.txt', { format: 'blob' })).text(), 'hello ä')
  let streamed = ''
  for await (const chunk of await sbx.files.read('notes/a.txt', { format: 'stream' })) streamed += Buffer.from(chunk).toString()
  assert.equal(streamed, 'hello ä')
  await sbx.files.write('/tmp/b.bin', new Uint8Array([0, 1, 2, 255]).buffer)
  assert.deepEqual([...(await sbx.files.read('/tmp/b.bin', { format: 'bytes' }))], [0, 1, 2, 255])
  const stat = await sbx.commands.run('stat -c "%a %U" notes/a.txt')
  assert.equal(stat.stdout, '644 user\n')
}))

test('several files, gzip, octet stream, large', boxed(async (sbx) => {
  const infos = await sbx.files.writeFiles([{ path: 'x/1', data: 'one' }, { path: '/tmp/2', data: new Blob(['two']) }])
  assert.deepEqual(infos.map((i) => i.path), ['/home/user/x/1', '/tmp/2'])
  assert.equal(await sbx.files.read('/tmp/2'), 'two')
  await sbx.files.write('zipped', 'z'.repeat(100_000), { gzip: true })
  assert.equal((await sbx.files.read('zipped', { gzip: true })).length, 100_000)
  await sbx.files.write('octets', 'plain', { useOctetStream: true })
  assert.equal(await sbx.files.read('octets'), 'plain')
  const big = Buffer.alloc(20 << 20, 'abcdefgh')
  await sbx.files.write('big', new Blob([big]))
  assert.ok(big.equals(Buffer.from(await sbx.files.read('big', { format: 'bytes' }))))
}))

test('folders: make, list with depth, move, remove, exists', boxed(async (sbx) => {
  assert.equal(await sbx.files.makeDir('d/e/f'), true)
  assert.equal(await sbx.files.makeDir('d/e/f'), false)
  await sbx.files.write('d/e/f/g.txt', 'g')
  const flat = await sbx.files.list('d')
  assert.deepEqual(flat.map((e) => [e.name, e.type]), [['e', FileType.DIR]])
  const deep = await sbx.files.list('d', { depth: 3 })
  assert.deepEqual(deep.map((e) => e.path).sort(), ['/home/user/d/e', '/home/user/d/e/f', '/home/user/d/e/f/g.txt'])
  const moved = await sbx.files.rename('d/e/f/g.txt', 'd/h.txt')
  assert.equal(moved.path, '/home/user/d/h.txt')
  assert.equal(await sbx.files.exists('d/e/f/g.txt'), false)
  await sbx.files.remove('d')
  assert.equal(await sbx.files.exists('d'), false)
}))

test('information and metadata', boxed(async (sbx) => {
  await sbx.files.write('m.txt', '12345', { metadata: { author: 'me' } })
  const info = await sbx.files.getInfo('m.txt')
  assert.equal(info.size, 5)
  assert.equal(info.owner, 'user')
  assert.equal(info.mode, 0o644)
  assert.equal(info.permissions, '-rw-r--r--')
  assert.deepEqual(info.metadata, { author: 'me' })
  await sbx.commands.run('ln -s m.txt link')
  assert.equal((await sbx.files.getInfo('link')).symlinkTarget, '/home/user/m.txt')
}))

test('errors have their classes', boxed(async (sbx) => {
  await assert.rejects(sbx.files.read('none'), FileNotFoundError)
  await assert.rejects(sbx.files.list('none'), FileNotFoundError)
  await assert.rejects(sbx.files.getInfo('none'), FileNotFoundError)
  await sbx.files.write('file', 'x')
  await assert.rejects(sbx.files.list('file'), InvalidArgumentError)
  await assert.rejects(sbx.files.read('/tmp'), InvalidArgumentError)
  await assert.rejects(sbx.files.watchDir('none', () => {}), FileNotFoundError)
}))

test('watch: events, entries, folders made later', boxed(async (sbx) => {
  await sbx.files.makeDir('w')
  const events = []
  const handle = await sbx.files.watchDir('w', (e) => { events.push(e) }, { recursive: true, includeEntry: true, timeoutMs: 0 })
  await sbx.files.write('w/a.txt', 'a')
  await until(() => events.some((e) => e.type === FilesystemEventType.CREATE && e.name === 'a.txt'))
  await until(() => events.some((e) => e.type === FilesystemEventType.WRITE && e.name === 'a.txt' && e.entry?.path === '/home/user/w/a.txt'))
  await sbx.files.makeDir('w/sub')
  await until(() => events.some((e) => e.type === FilesystemEventType.CREATE && e.name === 'sub'))
  await sbx.files.write('w/sub/b.txt', 'b')
  await until(() => events.some((e) => e.name === 'sub/b.txt'))
  await sbx.files.remove('w/a.txt')
  await until(() => events.some((e) => e.type === FilesystemEventType.REMOVE && e.name === 'a.txt'))
  await handle.stop()
}))
