import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { BuildError, Template, waitForPort } from 'e2b'
import { withBox } from './box.mjs'

test('Template.build on base: RUN, COPY, ENV, WORKDIR, USER, start and ready command, tags', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'ctx-'))
  fs.mkdirSync(path.join(dir, 'app/deep'), { recursive: true })
  fs.writeFileSync(path.join(dir, 'app/main.txt'), 'main')
  fs.writeFileSync(path.join(dir, 'app/deep/d.txt'), 'deep')
  fs.writeFileSync(path.join(dir, 'one.txt'), 'one')
  fs.symlinkSync('main.txt', path.join(dir, 'app/link'))
  const name = `built-${Date.now()}`
  const template = Template({ fileContextPath: dir })
    .fromBaseImage()
    .setEnvs({ COLOUR: 'deep blue' })
    .runCmd('echo "run as $(id -un), $COLOUR" > /tmp/ran')
    .runCmd('touch /etc/by-root', { user: 'root' })
    .setWorkdir('/srv/place')
    .copy('app', '/srv/app')
    .copy('one.txt', 'sub/', { mode: 0o600 })
    .copy('app/*.txt', '/srv/globbed/')
    .runCmd('[[ $(pwd) == /srv/place ]] && pwd > here && cat /srv/app/deep/d.txt')
    .setStartCmd('python3 -m http.server 8123 --bind 127.0.0.1', waitForPort(8123))
  const logs = []
  const built = await Template.build(template, name, { cpuCount: 1, memoryMB: 1024, onBuildLogs: (l) => { logs.push(l.message) } })
  assert.ok(built.templateId && built.buildId)
  assert.ok(logs.some((l) => l.includes('RUN')), logs.join('\n'))
  assert.ok(logs.some((l) => l.includes('deep')), logs.join('\n'))
  assert.equal(await Template.exists(name), true)
  assert.equal(await Template.exists('never-built'), false)
  await withBox({ template: name }, async (sbx) => {
    assert.equal(await sbx.files.read('/tmp/ran'), 'run as user, deep blue\n')
    assert.equal(await sbx.files.exists('/etc/by-root'), true)
    assert.equal(await sbx.files.read('/srv/app/link'), 'main')
    assert.deepEqual((await sbx.files.list('/srv/globbed')).map((e) => e.name), ['main.txt'])
    assert.equal(await sbx.files.read('/srv/place/here'), '/srv/place\n')
    assert.equal((await sbx.files.getInfo('/srv/place/sub/one.txt')).mode, 0o600)
    assert.equal((await sbx.commands.run('echo $COLOUR; pwd')).stdout, 'deep blue\n/srv/place\n')
    assert.match((await sbx.commands.run('curl -s --noproxy "*" http://127.0.0.1:8123/')).stdout, /Directory listing/)
    const info = await sbx.getInfo()
    assert.equal(info.memoryMB, 1024)
  })
  const tags = await Template.assignTags(`${name}:default`, ['v1', 'stable'])
  assert.deepEqual(tags.tags, ['v1', 'stable'])
  assert.deepEqual((await Template.getTags(built.templateId)).map((t) => t.tag).sort(), ['default', 'stable', 'v1'])
  await withBox({ template: `${name}:v1` }, async (sbx) => assert.equal(await sbx.files.exists('/etc/by-root'), true))
  await Template.removeTags(name, ['v1'])
  await assert.rejects(withBox({ template: `${name}:v1` }, async () => {}))
  const child = Template().fromTemplate(name).runCmd('echo child > /tmp/child')
  await Template.build(child, `${name}-child`)
  await withBox({ template: `${name}-child` }, async (sbx) => {
    assert.equal(await sbx.files.read('/tmp/child'), 'child\n')
    assert.equal(await sbx.files.exists('/etc/by-root'), true)
  })
})

test('a failing step is a BuildError that says so', async () => {
  const template = Template().fromBaseImage().runCmd('echo fine').runCmd('echo broken >&2; exit 3')
  await assert.rejects(Template.build(template, `broken-${Date.now()}`), (e) => e instanceof BuildError && /exit status 3/.test(e.message))
})

test('a start template of nobody is refused', async () => {
  await assert.rejects(Template.build(Template().fromTemplate('never-built').runCmd('true'), `x-${Date.now()}`), BuildError)
})
