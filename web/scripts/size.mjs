// Fails when what the browser must load first grows beyond the limit: the entry,
// everything it imports statically, and nothing that is loaded by need.
import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const LIMIT_KB = 300
const dist = new URL('../dist/', import.meta.url)
const html = readFileSync(new URL('index.html', dist), 'utf8')
const wanted = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js|theme\.js)"/g)].map((match) => match[1])
const seen = new Set()
while (wanted.length > 0) {
  const name = wanted.pop()
  if (seen.has(name)) continue
  seen.add(name)
  const code = readFileSync(new URL(name, dist), 'utf8')
  for (const [, file] of code.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) wanted.push(`assets/${file}`)
}
const zipped = (name) => gzipSync(readFileSync(new URL(name, dist)), { level: 9 }).length / 1024
const first = [...seen].reduce((sum, name) => sum + zipped(name), 0)
const later = readdirSync(new URL('assets/', dist)).filter((name) => name.endsWith('.js') && !seen.has(`assets/${name}`))
console.log(`first load: ${first.toFixed(1)} KB gzipped in ${seen.size} files (limit ${LIMIT_KB} KB); ${later.length} files by need`)
if (first > LIMIT_KB) {
  console.error(`first load is over the limit by ${(first - LIMIT_KB).toFixed(1)} KB: load something by need`)
  process.exit(1)
}
