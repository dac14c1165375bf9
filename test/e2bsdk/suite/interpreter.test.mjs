import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NotFoundError } from 'e2b'
import { Sandbox } from '@e2b/code-interpreter'
import { api } from './box.mjs'

const boxed = (fn) => async () => {
  const sbx = await Sandbox.create({ timeoutMs: 120_000, envs: { GLOBAL: 'g' } })
  try {
    await fn(sbx)
  } finally {
    await sbx.kill()
  }
}

test('python: result, output, variables that stay, environment', boxed(async (sbx) => {
  let e = await sbx.runCode('x = 20\nprint("out")\nimport sys\nprint("err", file=sys.stderr)\nx + 22')
  assert.equal(e.text, '42')
  assert.deepEqual(e.logs.stdout.join(''), 'out\n')
  assert.deepEqual(e.logs.stderr.join(''), 'err\n')
  assert.equal(e.executionCount, 1)
  e = await sbx.runCode('x += 1; x')
  assert.equal(e.text, '21')
  e = await sbx.runCode('import os; (os.environ.get("GLOBAL"), os.environ.get("ONCE"), os.getcwd())', { envs: { ONCE: 'o' } })
  assert.equal(e.text, "('g', 'o', '/home/user')")
  e = await sbx.runCode('os.environ.get("ONCE")')
  assert.equal(e.text, undefined)
  e = await sbx.runCode('import subprocess; subprocess.run("echo child", shell=True); None')
  assert.equal(e.logs.stdout.join(''), 'child\n')
}))

test('python: rich results and errors', boxed(async (sbx) => {
  const results = []
  let e = await sbx.runCode('class H:\n  def _repr_html_(self): return "<b>x</b>"\ndisplay(H())\nH()', { onResult: (r) => { results.push(r) } })
  assert.equal(results.length, 2)
  assert.equal(e.results[1].html, '<b>x</b>')
  assert.equal(e.results[1].isMainResult, true)
  e = await sbx.runCode('def f():\n  return 1/0\nf()')
  assert.equal(e.error.name, 'ZeroDivisionError')
  assert.equal(e.error.value, 'division by zero')
  assert.match(e.error.traceback, /return 1\/0/)
  e = await sbx.runCode('this is no python')
  assert.equal(e.error.name, 'SyntaxError')
}))

test('output is streamed, whole and multi-byte', boxed(async (sbx) => {
  const parts = []
  const e = await sbx.runCode('import time\nfor i in range(3):\n  print(i, flush=True)\n  time.sleep(0.15)\nprint("ä€😀" * 100000)', { onStdout: (m) => { parts.push(m.line) } })
  assert.ok(parts.length >= 3)
  assert.equal(e.logs.stdout.join(''), '0\n1\n2\n' + 'ä€😀'.repeat(100000) + '\n')
}))

test('contexts: of their own, listed, restarted, removed', boxed(async (sbx) => {
  const ctx = await sbx.createCodeContext({ cwd: '/tmp' })
  assert.equal(ctx.language, 'python')
  await sbx.runCode('y = 1', { context: ctx })
  assert.equal((await sbx.runCode('import os; (y, os.getcwd())', { context: ctx })).text, "(1, '/tmp')")
  assert.equal((await sbx.runCode('y')).error.name, 'NameError')
  assert.ok((await sbx.listCodeContexts()).some((c) => c.id === ctx.id))
  await sbx.restartCodeContext(ctx)
  assert.equal((await sbx.runCode('y', { context: ctx })).error.name, 'NameError')
  await sbx.removeCodeContext(ctx)
  await assert.rejects(sbx.runCode('1', { context: ctx }), NotFoundError)
}))

test('other languages', boxed(async (sbx) => {
  let e = await sbx.runCode('let a = 40; console.log("log"); a + 2', { language: 'javascript' })
  assert.equal(e.text, '42')
  assert.equal(e.logs.stdout.join(''), 'log\n')
  assert.equal((await sbx.runCode('a', { language: 'js' })).text, '40')
  e = await sbx.runCode('echo $((6*7)); exit 3', { language: 'bash' })
  assert.equal(e.logs.stdout.join(''), '42\n')
  assert.match(e.error.value, /3/)
}))

test('a timeout interrupts the run, the context lives on', boxed(async (sbx) => {
  await sbx.runCode('z = 5')
  await assert.rejects(sbx.runCode('import time; time.sleep(600)', { timeoutMs: 500 }))
  assert.equal((await sbx.runCode('z')).text, '5')
}))

test('code is not run without the token', boxed(async (sbx) => {
  const res = await fetch(`${api}/execute`, {
    method: 'POST', headers: { 'E2b-Sandbox-Id': sbx.sandboxId, 'E2b-Sandbox-Port': '49999', 'Content-Type': 'application/json' }, body: '{"code":"1"}',
  })
  assert.equal(res.status, 401)
}))
