// A squad with a local repository and a scripted agent, made through the API.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './flow.mjs'

// The agent is a shell script: it thinks, runs something, writes a file, and in a
// second turn does what the review asked. SLOW makes it wait for a file, so that a
// test can look at it while it works, without guessing times.
export const AGENT = `
say() { printf '{"squad":"%s","text":"%s"}\\n' "$1" "$2"; }
say thought "I look at the repository first."
say message "I will write **hello.txt** in turn $SQUAD_TURN."
printf '{"squad":"tool_call","id":"t%s","title":"list files","kind":"execute","status":"completed","command":"ls -a","exit_code":0,"duration_ms":3,"output":"README.md"}\\n' "$SQUAD_TURN"
for i in 1 2 3 4 5; do echo "working on turn $SQUAD_TURN, line $i"; done
if [ -n "$SLOW" ]; then echo "half done" > draft.txt; n=0; while [ ! -e /home/user/go ] && [ $n -lt 1200 ]; do n=$((n+1)); echo "tick $n"; sleep 0.25; done; fi
if [ "$SQUAD_TURN" -gt 1 ]; then echo "as the review asked" >> hello.txt; git commit -qam "fix: do what the review asked"; else
printf 'hello from %s\\nsecond line\\n' "$SQUAD_MEMBER" > hello.txt; git add hello.txt; git commit -qm "feat: say hello"; fi
say thought "Done; a person can look at it now."
`

/** A small git repository on disk, to be copied into the local forge. */
function seed() {
  const dir = mkdtempSync(join(tmpdir(), 'squad-seed-'))
  const git = (...args) => execFileSync('git', ['-c', 'user.name=Seed', '-c', 'user.email=seed@example.org', ...args], { cwd: dir, stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  writeFileSync(join(dir, 'README.md'), '# A place to say hello\n')
  git('add', '.')
  git('commit', '-q', '-m', 'docs: begin')
  return dir
}

/** An agent that asks first and does what it was told in its second turn. */
export const ASKING = `
say() { printf '{"squad":"%s","text":"%s"}\\n' "$1" "$2"; }
if [ "$SQUAD_TURN" = 1 ]; then say question "Which colour shall it be?"; exit 0; fi
echo painted > colour.txt; seq 700 > numbers.txt; printf 'package paint\n\nfunc Red() string { return "red" }\n' > paint.go; git add .; git commit -qm "feat: paint it"; say message "It is painted."
`

export const addMember = (server, squad, name, command, env) => server.api('/members', { method: 'POST', body: { squad_id: squad.id, name, role: 'developer', config: { agent: 'command', command, ...(env && { env }) } } })

export async function makeSquad(server, { slow = false, name = 'Flow team' } = {}) {
  const post = (path, body) => server.api(path, { method: 'POST', body })
  const squad = await post('/squads', { name })
  const from = seed()
  const repository = await post('/repositories', { squad_id: squad.id, name: `repo-${squad.id.slice(-6)}`, forge: 'local', import_path: from })
  rmSync(from, { recursive: true, force: true })
  const member = await post('/members', {
    squad_id: squad.id, name: 'Ada', role: 'developer', specialization: 'everything',
    config: { agent: 'command', command: AGENT, ...(slow && { env: { SLOW: '1' } }) },
  })
  return { squad, repository, member }
}

/** Lets a slow agent go on, as soon as it is at work. */
export async function release(server, executionId) {
  let sandbox
  await until('the agent is at work', async () => {
    const { step, sandbox_id: id } = await server.api(`/executions/${executionId}`)
    if (step === 'agent') sandbox = id
    return sandbox
  })
  await server.api(`/sandboxes/${sandbox}/execute`, { method: 'POST', body: { command: 'touch /home/user/go' } })
}
