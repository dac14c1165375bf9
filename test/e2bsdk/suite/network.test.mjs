import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import http from 'node:http'
import { test } from 'node:test'
import { Sandbox } from 'e2b'
import { api, boxed, preview, until } from './box.mjs'

const serve = `
import http.server, socketserver
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.path + ' host=' + self.headers.get('Host', '') + ' key=' + str(self.headers.get('X-API-Key')) + ' cookie=' + str(self.headers.get('Cookie'))).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Set-Cookie', 'sid=1; Domain=localhost; Path=/')
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        n = int(self.headers['Content-Length'])
        body = self.rfile.read(n)[::-1]
        self.send_response(201); self.send_header('Content-Length', str(n)); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer): pass
S(('127.0.0.1', 8000), H).serve_forever()
`

async function startServer(sbx) {
  await sbx.files.write('/tmp/serve.py', serve)
  await sbx.commands.run('python3 /tmp/serve.py', { background: true, timeoutMs: 0 })
  await sbx.commands.run('until curl -s --noproxy "*" http://127.0.0.1:8000/ >/dev/null; do sleep 0.05; done')
}

test('a port is reached by getHost', boxed(async (sbx) => {
  const host = sbx.getHost(8000)
  assert.match(host, new RegExp(`^8000-${sbx.sandboxId}\\.`))
  let r = await preview(host)
  assert.equal(r.status, 502)
  assert.deepEqual(JSON.parse(r.body), { sandboxId: sbx.sandboxId, message: 'The sandbox is running but port is not open', port: 8000, code: 502 })
  r = await preview(host, '/', { headers: { 'User-Agent': 'Mozilla/5.0', Accept: 'text/html' } })
  assert.match(r.headers['content-type'], /text\/html/)
  await startServer(sbx)
  r = await preview(host, '/a?b=c', { headers: { 'X-API-Key': process.env.E2B_API_KEY } })
  assert.equal(r.status, 200)
  assert.equal(r.body, `/a?b=c host=${host} key=None cookie=None`)
  assert.deepEqual(r.headers['set-cookie'], ['sid=1; Path=/'])
  r = await preview(host, '/up', { method: 'POST', body: 'abc' })
  assert.equal(r.status, 201)
  assert.equal(r.body, 'cba')
  const byHeader = await fetch(`${api}/x`, { headers: { 'E2b-Sandbox-Id': sbx.sandboxId, 'E2b-Sandbox-Port': '8000', Cookie: 'squad_session=s' } })
  const text = await byHeader.text()
  assert.match(text, /^\/x /)
  assert.match(text, /cookie=None/)
  assert.equal(byHeader.headers.get('set-cookie'), null)
}))

test('unknown sandbox, bad port, internal routes', boxed(async (sbx) => {
  let r = await preview('8000-inope.localhost')
  assert.equal(r.status, 502)
  assert.deepEqual(JSON.parse(r.body), { sandboxId: 'inope', message: 'The sandbox was not found', code: 502 })
  r = await preview(`99999-${sbx.sandboxId}.localhost`)
  assert.equal(r.status, 400)
  for (const path of ['/init', '/freeze', '/upgrade']) {
    const res = await fetch(api + path, { method: 'POST', headers: { 'E2b-Sandbox-Id': sbx.sandboxId }, body: '{}' })
    assert.equal(res.status, 404, path)
  }
}))

test('WebSocket through the proxy', boxed(async (sbx) => {
  await sbx.files.write('/tmp/ws.py', `
import socket, base64, hashlib
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 8001)); s.listen()
open('/tmp/listening', 'w').close()
c, _ = s.accept(); head = b''
while b'\\r\\n\\r\\n' not in head: head += c.recv(1024)
key = [l.split(b': ')[1] for l in head.split(b'\\r\\n') if l.lower().startswith(b'sec-websocket-key')][0]
acc = base64.b64encode(hashlib.sha1(key + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())
c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + acc + b'\\r\\n\\r\\n')
while True:
    d = c.recv(1024)
    if not d: break
    c.sendall(d.upper())
`)
  await sbx.commands.run('python3 /tmp/ws.py', { background: true, timeoutMs: 0 })
  await until(() => sbx.files.exists('/tmp/listening'))
  const { hostname, port } = new URL(api)
  const key = crypto.randomBytes(16).toString('base64')
  const answer = await new Promise((resolve, reject) => {
    const req = http.request({ hostname, port, headers: { Host: sbx.getHost(8001), Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': '13' } })
    req.on('upgrade', (res, socket) => {
      socket.on('data', (d) => { resolve([res.headers['sec-websocket-accept'], d.toString()]); socket.destroy() })
      socket.write('ping')
    })
    req.on('response', (res) => reject(new Error(`status ${res.statusCode}`)))
    req.on('error', reject)
    req.end()
  })
  assert.equal(answer[0], crypto.createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64'))
  assert.equal(answer[1], 'PING')
}))

test('without public traffic a token is needed, envd is exempt', boxed(async (sbx) => {
  await startServer(sbx)
  assert.equal((await preview(sbx.getHost(8000))).status, 403)
  assert.equal((await preview(sbx.getHost(8000), '/', { headers: { 'e2b-traffic-access-token': 'wrong' } })).status, 403)
  const ok = await preview(sbx.getHost(8000), '/', { headers: { 'e2b-traffic-access-token': sbx.trafficAccessToken } })
  assert.equal(ok.status, 200)
}, { network: { allowPublicTraffic: false } }))

test('maskRequestHost', boxed(async (sbx) => {
  await startServer(sbx)
  assert.match((await preview(sbx.getHost(8000))).body, /host=localhost:8000 /)
}, { network: { maskRequestHost: 'localhost:${PORT}' } }))

test('httpsPorts: the server inside speaks TLS', boxed(async (sbx) => {
  await sbx.files.write('/tmp/tls.py', serve.replace("S(('127.0.0.1', 8000), H).serve_forever()", `
import ssl
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('/tmp/cert.pem', '/tmp/key.pem')
s = S(('127.0.0.1', 8443), H); s.socket = c.wrap_socket(s.socket, server_side=True); s.serve_forever()`))
  await sbx.commands.run('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -keyout /tmp/key.pem -out /tmp/cert.pem')
  await sbx.commands.run('python3 /tmp/tls.py', { background: true, timeoutMs: 0 })
  await until(async () => (await preview(sbx.getHost(8443))).status === 200)
  assert.match((await preview(sbx.getHost(8443), '/tls')).body, /^\/tls /)
}, { network: { httpsPorts: [8443] } }))

const get = async (sbx, url) => {
  const r = await sbx.commands.run(`curl -s -o /tmp/out -w '%{http_code}' --max-time 20 ${url}; echo; cat /tmp/out; rm -f /tmp/out`)
  return r.stdout
}

test('the way out: public names yes, private addresses never', boxed(async (sbx) => {
  assert.match(await get(sbx, 'http://one.test/'), /^200\noutside says hello to one.test/)
  for (const url of ['http://lies.test/', 'http://meta.test/latest/meta-data/', 'http://inner.test/', 'http://169.254.169.254/', 'http://10.1.2.3/', 'http://[::1]:80/', 'http://2130706433/', api]) {
    const r = await sbx.commands.run(`curl -s --max-time 20 --noproxy none.test -x http://127.0.0.1:3128 ${url} || true`)
    assert.doesNotMatch(r.stdout, /outside says|code/, url)
  }
  const direct = await sbx.commands.run(`curl -s --noproxy '*' --max-time 5 ${api}/health; echo $?`)
  assert.notEqual(direct.stdout.trim(), '0')
}))

test('no internet', boxed(async (sbx) => {
  const out = await get(sbx, 'http://one.test/')
  assert.doesNotMatch(out, /outside says/)
  assert.match(out, /allow_internet_access/)
}, { allowInternetAccess: false }))

test('allow and deny, changed while it runs', boxed(async (sbx) => {
  assert.match(await get(sbx, 'http://one.test/'), /outside says/)
  assert.match(await get(sbx, 'http://sub.one.test/'), /denyOut/)
  assert.match(await get(sbx, 'http://two.test/'), /denyOut 0.0.0.0\/0/)
  assert.match(await get(sbx, 'http://203.0.113.2/'), /denyOut/)
  await sbx.updateNetwork({ allowOut: ['*.one.test', '203.0.113.2'], denyOut: ['0.0.0.0/0'] })
  assert.match(await get(sbx, 'http://sub.one.test/'), /outside says/)
  assert.match(await get(sbx, 'http://two.test/'), /outside says/)
  assert.match(await get(sbx, 'http://one.test/'), /denyOut/)
  await sbx.updateNetwork({})
  assert.match(await get(sbx, 'http://one.test/'), /outside says/)
}, { network: { allowOut: ['one.test'], denyOut: ['0.0.0.0/0'] } }))

test('settings that cannot be kept are refused', async () => {
  await assert.rejects(Sandbox.create({ network: { allowOut: ['one.test'] } }), /denyOut/)
  await assert.rejects(Sandbox.create({ network: { rules: { 'one.test': [{ transform: { headers: { a: 'b' } } }] } } }), /does not support/)
})
