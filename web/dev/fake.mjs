// A stand-in for the server while the page is worked on. Not shipped, not tested
// against: plausible data, the same paths, a stream that moves.
//   node dev/fake.mjs [--port 7777] [--tasks 24] [--still] [--dist]
import { createServer } from 'node:http'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { makeWorld } from './world.mjs'

const arg = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? fallback : (process.argv[at + 1]?.startsWith('--') ?? true) ? true : process.argv[at + 1]
}
const port = Number(arg('port', 7777))
const world = makeWorld(Number(arg('tasks', 24)))
const readers = new Set()
const dist = new URL('../dist/', import.meta.url).pathname

function emit(event) {
  const full = world.append(event)
  const text = `id: ${full.seq}\nevent: ${full.type}\ndata: ${JSON.stringify(full)}\n\n`
  for (const reader of readers) reader.write(text)
}
world.emit = emit

const send = (res, status, body) => {
  res.writeHead(status, { 'Content-Type': status >= 400 ? 'application/problem+json' : 'application/json' })
  res.end(body === undefined ? undefined : JSON.stringify(body))
}
const problem = (res, status, code, detail) => send(res, status, { status, code, title: code, detail })

const server = createServer(async (req, res) => {
  const url = new URL(req.url, `http://127.0.0.1:${port}`)
  if (!url.pathname.startsWith('/api/v1')) return page(url, res)
  const path = url.pathname.slice('/api/v1'.length)
  const signedIn = /squad_session=yes/.test(req.headers.cookie ?? '')
  let text = ''
  for await (const chunk of req) text += chunk
  const body = text ? JSON.parse(text) : {}
  if (path === '/session' && req.method === 'POST') {
    if (body.token !== 'dev') return problem(res, 401, 'unauthorized', 'This token is not known here.')
    res.setHeader('Set-Cookie', 'squad_session=yes; Path=/; HttpOnly; SameSite=Strict')
    return send(res, 200, world.me)
  }
  if (!signedIn) return problem(res, 401, 'unauthorized', 'Sign in first.')
  if (path === '/session' && req.method === 'DELETE') {
    res.setHeader('Set-Cookie', 'squad_session=; Path=/; Max-Age=0')
    return send(res, 204)
  }
  if (path === '/sse') return stream(req, res, url)
  const answer = world.handle(req.method, path, url.searchParams, body)
  if (!answer) return problem(res, 404, 'not_found', `nothing at ${path}`)
  if (answer.raw) {
    res.writeHead(200, { 'Content-Type': 'application/octet-stream' })
    return res.end(answer.raw)
  }
  if (answer.error) return problem(res, ...answer.error)
  send(res, answer.status ?? 200, answer.body)
})

function stream(req, res, url) {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  const after = Number(req.headers['last-event-id'] ?? url.searchParams.get('after') ?? 0)
  for (const event of world.events) if (event.seq > after) res.write(`id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  readers.add(res)
  const beat = setInterval(() => res.write(': beat\n\n'), 15_000)
  req.on('close', () => { readers.delete(res); clearInterval(beat) })
}

const KINDS = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
async function page(url, res) {
  for (const name of [url.pathname, '/index.html']) {
    try {
      const file = await readFile(join(dist, name))
      res.writeHead(200, {
        'Content-Type': KINDS[extname(name)] ?? 'application/octet-stream',
        'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
      })
      return res.end(file)
    } catch { /* try the next */ }
  }
  res.writeHead(404).end('run `npm run build` or use Vite')
}

server.listen(port, '127.0.0.1', () => console.log(`fake server on http://127.0.0.1:${port} (token: dev)`))
if (!arg('still', false)) setInterval(() => world.tick(), Number(arg('every', 700)))
