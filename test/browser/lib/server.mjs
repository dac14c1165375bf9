// A real server: the built binary on a free port with a data folder of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const START_MS = 90_000
const STOP_MS = 60_000
const ANSWER_MS = 120_000

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

export class Server {
  /** All that were started and not closed. */
  static running = new Set()

  #process
  #log = ''
  #env

  /** Starts a server; env is added to its environment. */
  static async start(env = {}) {
    const server = new Server()
    Server.running.add(server)
    server.#env = env
    server.data = mkdtempSync(join(tmpdir(), 'squad-browser-'))
    server.port = await freePort()
    server.url = `http://127.0.0.1:${server.port}`
    await server.up()
    server.token = readFileSync(join(server.data, 'admin.token'), 'utf8').trim()
    return server
  }

  /** Starts the process and waits until it is ready; the sign-in link is kept. */
  async up() {
    const bin = process.env.SQUAD_BIN
    if (!bin) throw new Error('SQUAD_BIN names no binary: make build, then SQUAD_BIN=$PWD/bin/squad')
    this.#log = ''
    const child = spawn(bin, ['up', '--listen', `127.0.0.1:${this.port}`, '--data', this.data], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, SQUAD_LOG_LEVEL: 'info', ...this.#env } })
    this.#process = child
    const take = (chunk) => { this.#log = (this.#log + chunk).slice(-200_000) }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    const end = Date.now() + START_MS
    while (Date.now() < end) {
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}:\n${this.#log}`)
      const ready = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(ANSWER_MS) }).then((answer) => answer.ok, () => false)
      if (ready && /signin\?code=\S+/.test(this.#log)) break
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    this.link = /http\S+\/signin\?code=\S+/.exec(this.#log)?.[0]
    if (!this.link) throw new Error(`the server is not ready after ${START_MS} ms:\n${this.#log}`)
  }

  get log() { return this.#log }

  /** Ends the process; kill is the hard way. */
  async down({ kill = false } = {}) {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(kill ? 'SIGKILL' : 'SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await ended
    clearTimeout(timer)
  }

  async close() {
    Server.running.delete(this)
    await this.down()
    killWith(this.data) // sandboxes outlive their server, by design
    rmSync(this.data, { recursive: true, force: true })
  }

  async api(path, { method = 'GET', body } = {}) {
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, ...(body && { 'Content-Type': 'application/json' }) },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  }
}

// killWith ends the processes whose command line names a folder of ours.
function killWith(folder) {
  for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // it ended meanwhile
    }
  }
}
