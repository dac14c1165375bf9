// One JavaScript context; see kernel.py for what the descriptors are.
import fs from 'node:fs'
import readline from 'node:readline'
import { createRequire } from 'node:module'
import util from 'node:util'
import vm from 'node:vm'

const require = createRequire(process.cwd() + '/')
const tell = (event) => fs.writeSync(4, JSON.stringify(event) + '\n')
const scope = vm.createContext(Object.assign(Object.create(globalThis), { require, console, process, Buffer, fetch, setTimeout, clearTimeout, setInterval, clearInterval, URL, TextEncoder, TextDecoder }))
let count = 0
process.on('SIGINT', () => {}) // an interrupt is for the code, never for us

async function run(code, env) {
  tell({ type: 'number_of_executions', execution_count: ++count })
  const saved = { ...process.env }
  Object.assign(process.env, env)
  try {
    let value
    try {
      value = await vm.runInContext(code, scope, { filename: `cell ${count}`, breakOnSigint: true })
    } catch (e) {
      // Top-level await needs a function around it.
      if (!(e?.name === 'SyntaxError' && /await/.test(code))) throw e
      value = await vm.runInContext(`(async () => {${code}\n})()`, scope, { filename: `cell ${count}` })
    }
    if (value !== undefined) tell({ type: 'result', is_main_result: true, text: util.inspect(value) })
  } catch (e) {
    tell({ type: 'error', name: e?.name ?? 'Error', value: `${e?.message ?? e}`, traceback: `${e?.stack ?? e}` })
  } finally {
    process.env = saved
  }
}

for await (const line of readline.createInterface({ input: fs.createReadStream('', { fd: 3 }) })) {
  const request = JSON.parse(line)
  await run(request.code, request.env ?? {})
  await new Promise((r) => process.stdout.write('', r))
  fs.writeSync(1, request.mark)
  fs.writeSync(2, request.mark)
  tell({ type: 'done' })
}
