import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boxed } from './box.mjs'

test('the git helper: init, commit, branch, push, clone, pull', boxed(async (sbx) => {
  await sbx.git.configureUser('Ann', 'ann@example.com')
  await sbx.git.init('work', { initialBranch: 'main' })
  await sbx.files.write('work/a.txt', 'a')
  let status = await sbx.git.status('work')
  assert.equal(status.fileStatus.length, 1)
  await sbx.git.add('work')
  await sbx.git.commit('work', 'feat: a file')
  await sbx.git.createBranch('work', 'topic')
  assert.equal((await sbx.git.branches('work')).currentBranch, 'topic')
  await sbx.git.checkoutBranch('work', 'main')
  await sbx.git.deleteBranch('work', 'topic')
  await sbx.git.init('origin.git', { bare: true, initialBranch: 'main' })
  await sbx.git.remoteAdd('work', 'origin', '/home/user/origin.git')
  assert.equal(await sbx.git.remoteGet('work', 'origin'), '/home/user/origin.git')
  await sbx.git.push('work', { remote: 'origin', branch: 'main' })
  await sbx.git.clone('file:///home/user/origin.git', { path: 'copy' })
  assert.equal(await sbx.files.read('copy/a.txt'), 'a')
  await sbx.git.pull('copy', { remote: 'origin', branch: 'main' })
  status = await sbx.git.status('work')
  assert.equal(status.isClean, true)
  assert.equal(await sbx.git.getConfig('user.name'), 'Ann')
}))
