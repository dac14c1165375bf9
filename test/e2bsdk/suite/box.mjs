// Helpers shared by the suite.
import http from 'node:http'
import { Sandbox } from 'e2b'

export const api = process.env.E2B_API_URL

/** Runs fn with a new sandbox and kills it afterwards. */
export async function withBox(opts, fn) {
  const { template = 'base', ...rest } = opts
  const sbx = await Sandbox.create(template, { timeoutMs: 120_000, ...rest })
  try {
    return await fn(sbx)
  } finally {
    await sbx.kill()
  }
}

/** A test body that gets a sandbox of its own. */
export const boxed = (fn, opts = {}) => () => withBox(opts, fn)

/** Waits until check returns something true, at most ms milliseconds. */
export async function until(check, ms = 15_000) {
  const end = Date.now() + ms
  for (;;) {
    const value = await check()
    if (value) return value
    if (Date.now() > end) throw new Error(`not true within ${ms} ms: ${check}`)
    await new Promise((r) => setTimeout(r, 50))
  }
}

/** A request to a preview: the name goes in Host, the connection to loopback. */
export function preview(host, path = '/', { method = 'GET', headers = {}, body } = {}) {
  const { hostname, port } = new URL(api)
  return new Promise((resolve, reject) => {
    const req = http.request({ hostname, port, path, method, headers: { Host: host, ...headers } }, (res) => {
      const chunks = []
      res.on('data', (c) => chunks.push(c))
      res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks).toString() }))
    })
    req.on('error', reject)
    req.end(body)
  })
}
