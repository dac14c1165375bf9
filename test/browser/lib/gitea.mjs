// A real Gitea, started by the Go test, and a slow line to it.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

const { GITEA_URL: url, GITEA_TOKEN: token } = process.env

export const gitea = url && {
  url,
  token,

  async api(path, { method = 'GET', body } = {}, tries = 100) {
    const answer = await fetch(`${url}/api/v1${path}`, { method, headers: { Authorization: `token ${token}`, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) })
    const text = await answer.text()
    if (answer.status === 405 && text.includes('try again later') && tries > 1) { // a merge, while it looks at what was pushed
      await sleep(100)
      return this.api(path, { method, body }, tries - 1)
    }
    if (!answer.ok) throw new Error(`gitea ${method} ${path}: ${answer.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  },

  /** Makes a repository with one commit, or with that many random files of 64 KB. */
  async repository(name, files = 0) {
    const owner = `org-${randomBytes(4).toString('hex')}`
    await this.api('/orgs', { method: 'POST', body: { username: owner } })
    await this.api(`/orgs/${owner}/repos`, { method: 'POST', body: { name, auto_init: files === 0, default_branch: 'main', private: true } })
    if (files > 0) fill(`${url.replace('://', `://squad:${token}@`)}/${owner}/${name}.git`, files)
    return `${owner}/${name}`
  },
}

function fill(remote, files) {
  const dir = mkdtempSync(join(tmpdir(), 'squad-large-'))
  const git = (...args) => execFileSync('git', ['-c', 'user.name=Seed', '-c', 'user.email=seed@example.org', '-c', 'core.compression=0', ...args], { cwd: dir, stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  for (let n = 0; n < files; n++) writeFileSync(join(dir, `part-${n}.bin`), randomBytes(65_536))
  git('add', '.')
  git('commit', '-q', '-m', 'docs: begin large')
  git('push', '-q', remote, 'main')
  rmSync(dir, { recursive: true, force: true })
}

/** A line to an address that lets so many bytes a second through, each way, and can be made faster or slower. */
export class SlowLine {
  #server
  #sockets = new Set()

  constructor(bytesPerSecond) { this.bytesPerSecond = bytesPerSecond }

  static async to(target, bytesPerSecond) {
    const line = new SlowLine(bytesPerSecond)
    const { hostname, port } = new URL(target)
    line.#server = createServer((near) => line.#join(near, connect(Number(port), hostname))).listen(0, '127.0.0.1')
    line.#server.unref() // a flow that failed on the way ends all the same
    await once(line.#server, 'listening')
    line.url = `http://127.0.0.1:${line.#server.address().port}`
    return line
  }

  close() {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(near, far) {
    for (const socket of [near, far]) {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        for (const other of [near, far]) other.destroySoon()
      })
    }
    near.pipe(this.#slow()).pipe(far)
    far.pipe(this.#slow()).pipe(near)
  }

  #slow() {
    return new Transform({
      highWaterMark: 16_384,
      transform: async (chunk, _encoding, done) => {
        if (this.bytesPerSecond < Infinity) await sleep((chunk.length / this.bytesPerSecond) * 1000)
        done(null, chunk)
      },
    })
  }
}
