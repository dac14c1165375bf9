// Data of the stand-in server.
import { randomUUID } from 'node:crypto'

const now = Date.now()
const at = (minutesAgo) => new Date(now - minutesAgo * 60_000).toISOString()
const pick = (list, i) => list[i % list.length]

const TITLES = [
  'Rate-limit sign-in by address and account', 'Show clone progress on the card', 'Retry pushes when the base moved', 'Fix flaky lease renewal test',
  'Document the warm pool', 'Add squash merge to the local forge', 'Stream large diffs instead of buffering', 'Stop leaking file handles in the mirror',
  'Explain refused egress with the rule’s name', 'Paginate audit log', 'Escalate after three failed rebases', 'Cache template images by digest',
  'Parse conventional commits with scopes', 'Show cost per member', 'Resume sandboxes on traffic', 'Warn before the budget runs out',
  'Make the board work without a mouse', 'Collapse repeated log lines', 'Accept Gitea webhooks', 'Verify signatures of deliveries',
]
const LABELS = ['bug', 'docs', 'performance', 'security', 'ui', 'tech debt']
const STEPS = ['sandbox', 'clone', 'branch', 'agent', 'commit', 'push', 'pull_request']
const DESCRIPTION = `Sign-in may be tried without limit today. Bound it **per address** and **per account**.

## Done when
- [x] ten tries a minute per address, then \`429\` with \`Retry-After\`
- [ ] the limit holds across nodes
- [ ] a test walks the clock, no sleeping

\`\`\`go
limiter := api.NewLimiter(10, time.Minute)
\`\`\`

See [RFC 6585](https://www.rfc-editor.org/rfc/rfc6585) for the status code.`

const PATCH = `@@ -1,9 +1,16 @@
 package api
 
 import (
+	"net/netip"
 	"sync"
 	"time"
 )
 
-// Limiter counts.
-type Limiter struct{ n int }
+// Limiter bounds tries per address. The zero value refuses nothing.
+type Limiter struct {
+	mu    sync.Mutex
+	tries map[netip.Addr][]time.Time
+
+	most int
+	per  time.Duration
+}
@@ -30,4 +37,10 @@ func (l *Limiter) Allow(addr string) bool {
 	l.mu.Lock()
 	defer l.mu.Unlock()
-	return true
+	kept := l.tries[addr][:0]
+	for _, at := range l.tries[addr] {
+		if now.Sub(at) < l.per {
+			kept = append(kept, at)
+		}
+	}
+	return len(kept) < l.most
 }
`
const DIFF = {
  base: '4be1f2c9d0', head: '91c0aa71be',
  files: [
    { path: 'internal/api/limiter.go', status: 'modified', additions: 15, deletions: 3, patch: PATCH },
    { path: 'internal/api/limiter_test.go', status: 'added', additions: 9, deletions: 0, patch: '@@ -0,0 +1,9 @@\n+package api_test\n+\n+import "testing"\n+\n+func TestLimiter_RefusesTheEleventhTry(t *testing.T) {\n+\tt.Parallel()\n+\tl := api.NewLimiter(10, time.Minute)\n+\tfor range 10 {\n+\t\tl.Allow("192.0.2.1")\n' },
    { path: 'docs/limits.md', status: 'modified', additions: 1, deletions: 1, patch: '@@ -3,3 +3,3 @@\n # Limits\n-There are none.\n+Ten sign-ins a minute per address.\n See also SECURITY.md.\n' },
    { path: 'web/icon.png', status: 'modified', additions: 0, deletions: 0, binary: true },
  ],
}

export function makeWorld(taskCount) {
  const squad = { id: randomUUID(), name: 'Platform', description: 'Keeps the house standing.', status: 'active', config: { max_running: 8, budget: { day_usd: 40, task_usd: 5 }, egress: ['*.golang.org', '*.npmjs.org', 'github.com'], max_attempts: 3 }, created_at: at(90000), updated_at: at(400) }
  const other = { ...squad, id: randomUUID(), name: 'Docs guild', description: '', config: {} }
  const member = (name, role, specialization, agent, extra = {}) => ({ id: randomUUID(), squad_id: squad.id, name, role, specialization, llm_provider: agent === 'llm' ? 'anthropic' : '', llm_model: agent === 'llm' ? 'claude-sonnet' : '', system_prompt: 'You are careful and brief.', config: { agent, ...extra }, is_active: true, created_at: at(80000), updated_at: at(500) })
  const members = [member('Ada', 'developer', 'Go, storage, concurrency', 'acp', { preset: 'claude' }), member('Linus', 'developer', 'Git and forges', 'acp', { preset: 'codex' }), member('Grace', 'developer', 'TypeScript and interfaces', 'llm'), member('Margaret', 'reviewer', 'Reads everything twice', 'llm'), member('Joan', 'project_manager', 'Untangles', 'llm'), { ...member('Ken', 'tester', 'Breaks things', 'command', { command: './demo-agent' }), is_active: false }]
  const repository = (name, forge) => ({ id: randomUUID(), squad_id: squad.id, name, forge, url: forge === 'local' ? `http://127.0.0.1:7777/git/${name}.git` : `https://github.com/${name}.git`, default_branch: 'main', policy: { merge_method: 'squash' }, created_at: at(70000), updated_at: at(700) })
  const repositories = [repository('agentsquad', 'local'), repository('acme/shop', 'github'), repository('handbook', 'local')]
  const tasks = [], executions = [], sandboxes = [], pulls = [], conflicts = []
  const world = { me: { id: randomUUID(), name: 'Robin Okafor', email: 'robin@example.org', admin: true, created_at: at(90000), actor: { admin: true, ceiling: 'admin' }, roles: {} }, events: [], emit: () => {} }
  let seq = 0
  world.append = (event) => {
    const full = { seq: ++seq, at: new Date().toISOString(), squad_id: squad.id, ...event }
    world.events.push(full)
    if (world.events.length > 200_000) world.events.splice(0, 1000)
    return full
  }
  const add = (event) => world.append(event)

  for (let i = 0; i < taskCount; i++) {
    const status = taskCount > 100 ? (i < 100 ? 'in_progress' : pick(['backlog', 'todo', 'done', 'in_review'], i)) : pick(['in_progress', 'backlog', 'in_review', 'todo', 'done', 'in_progress', 'todo', 'done', 'backlog', 'in_progress'], i)
    const task = { id: randomUUID(), number: 101 + i, squad_id: squad.id, repository_id: pick(repositories, i).id, title: pick(TITLES, i), description: i === 0 ? DESCRIPTION : `${pick(TITLES, i)}.`, status, priority: [1, 1, 2, 1, 0, 1, 3, 1][i % 8], labels: i % 3 === 0 ? [pick(LABELS, i)] : i % 7 === 0 ? [pick(LABELS, i), pick(LABELS, i + 2)] : [], cost_usd: 0, position: i, version: 1, created_at: at(30 + i * 97), updated_at: at(i * 13) }
    tasks.push(task)
    if (i === 6) task.depends_on = [tasks[0].id, tasks[3].id]
    if (status === 'backlog' || status === 'todo') {
      if (i % 2) task.assignee_id = pick(members, i).id
      if (i === 3) Object.assign(task, { flag: 'failed', cause: 'Tests fail on the base branch as well.' })
      if (i === 8) Object.assign(task, { flag: 'blocked', cause: 'Needs a decision about retention.' })
      continue
    }
    const who = pick(members, i)
    task.assignee_id = who.id
    task.git_branch = `task-${task.number}`
    task.cost_usd = Math.round((0.13 + (i % 9) * 0.37) * 100) / 100
    const sandbox = { id: randomUUID(), provider: i % 4 === 3 ? 'e2b' : 'local', e2b_id: `i${i}x8fz`, squad_id: squad.id, agent_id: who.id, task_id: task.id, template: 'base', status: status === 'in_progress' ? 'running' : status === 'in_review' ? 'paused' : 'terminated', pooled: false, node: 'host-1', cpu: 2, memory_mb: 2048, epoch: 1, command_count: 14 + i, create_ms: 130 + i * 7, cost_usd: 0.02 * (i + 1), created_at: at(40 + i), last_used_at: at(1), expires_at: at(-600) }
    const execution = { id: randomUUID(), task_id: task.id, squad_id: squad.id, member_id: who.id, sandbox_id: sandbox.id, status: status === 'in_progress' ? 'running' : status === 'in_review' ? 'waiting' : 'succeeded', step: status === 'in_progress' ? pick(STEPS.slice(1, 6), i) : 'review', percent: 0, liveness: status === 'in_review' ? { state: 'review' } : { state: pick(['working', 'command', 'model', 'command', 'person'], i), detail: 'go test ./internal/api/...', since: at(1) }, attempt: 1, turn: 1, git_branch: task.git_branch, base_sha: '4be1f2c9d0aa', head_sha: '91c0aa71be00', commit_history: [{ sha: '91c0aa71be00', subject: 'feat(api): bound sign-in tries by address', author: who.name, at: at(9) }, { sha: '77ab3de01f22', subject: 'test(api): walk the clock over the limiter', author: who.name, at: at(4) }], tokens_in: 182_000 + i * 900, tokens_out: 9_300, tokens_cached: 120_000, model_cost_usd: task.cost_usd - 0.02, sandbox_cost_usd: 0.02, created_at: at(41 + i), started_at: at(40 + i), ...(status === 'done' && { finished_at: at(3 + i) }) }
    task.execution_id = execution.id
    sandbox.execution_id = execution.id
    sandboxes.push(sandbox)
    executions.push(execution)
    if (status !== 'in_progress') pulls.push({ id: randomUUID(), repository_id: task.repository_id, task_id: task.id, number: 40 + i, url: '', title: `feat: ${task.title.toLowerCase()}`, body: 'Bounds tries per address.\n\n**Evidence**\n\n| command | exit |\n|---|---|\n| `go test ./...` | 0 |', state: status === 'done' ? 'merged' : 'open', draft: false, head: task.git_branch, base: 'main', head_sha: '91c0aa71be', mergeable: i % 5 === 2 ? 'clean' : 'conflict', checks: pick(['success', 'pending', 'success', 'failure'], i), review: 'none', author: who.name, labels: [], created_at: at(20), updated_at: at(5) })
    if (status === 'in_progress') who.current_task_id = task.id
    if (i === 0) history(task, execution, who)
  }
  conflicts.push({ repository_id: repositories[0].id, task_id: tasks[0].id, other_task_id: tasks[5]?.id, files: ['internal/api/limiter.go', 'docs/limits.md'] })
  sandboxes.push({ ...sandboxes[0], id: randomUUID(), agent_id: undefined, task_id: undefined, execution_id: undefined, pooled: true, status: 'running', cost_usd: 0.001 }, { ...sandboxes[0], id: randomUUID(), status: 'error', error: 'The reaper found it without an owner.', agent_id: undefined, task_id: undefined })

  function history(task, execution, who) {
    const keysOf = { task_id: task.id, execution_id: execution.id, member_id: who.id, sandbox_id: execution.sandbox_id }
    const e = (type, payload) => add({ type, ...keysOf, payload })
    e('step', { step: 'sandbox', status: 'succeeded', duration_ms: 142 })
    e('step', { step: 'clone', status: 'succeeded', percent: 100, duration_ms: 610 })
    e('step', { step: 'branch', status: 'succeeded', duration_ms: 31 })
    e('step', { step: 'agent', status: 'running' })
    e('thought', { id: 't1', text: 'The limiter lives in internal/api. I should first read how requests learn their address, because a proxy changes it. ' })
    e('thought', { id: 't1', text: 'There is BehindProxy, so the last hop counts.' })
    e('message', { id: 'm1', text: 'I will read the limiter and its callers, then write the test **before** the change.' })
    e('plan', { entries: [{ text: 'Read limiter and callers', status: 'completed' }, { text: 'Write a test with a fake clock', status: 'in_progress' }, { text: 'Bound tries per address', status: 'pending' }, { text: 'Document the limits', status: 'pending' }] })
    e('tool_call', { id: 'c1', title: 'Read internal/api/limiter.go', kind: 'read', status: 'completed', paths: ['internal/api/limiter.go'], duration_ms: 12 })
    e('tool_call', { id: 'c2', title: 'Search for BehindProxy', kind: 'search', status: 'completed', duration_ms: 40, output: 'internal/api/request.go:118\ninternal/app/config.go:41' })
    e('tool_call', { id: 'c3', title: 'Write internal/api/limiter_test.go', kind: 'edit', status: 'completed', paths: ['internal/api/limiter_test.go'], duration_ms: 8 })
    e('tool_call', { id: 'c4', title: 'go test ./internal/api/...', kind: 'execute', status: 'failed', command: 'go test ./internal/api/... -run Limiter', exit_code: 1, duration_ms: 5230, output: '--- FAIL: TestLimiter_RefusesTheEleventhTry (0.00s)\n    limiter_test.go:14: eleventh try was allowed\nFAIL\nFAIL\tagentsquad/internal/api\t0.011s' })
    e('thought', { id: 't2', text: 'Good: the test fails for the right reason. Now the change itself.' })
    e('tool_call', { id: 'c5', title: 'Edit internal/api/limiter.go', kind: 'edit', status: 'completed', paths: ['internal/api/limiter.go'], duration_ms: 9 })
    e('tool_call', { id: 'c6', title: 'go test ./internal/api/...', kind: 'execute', status: 'completed', command: 'go test ./internal/api/... -run Limiter', exit_code: 0, duration_ms: 4870, output: 'ok  \tagentsquad/internal/api\t0.014s' })
    e('question', { id: 'q1', text: 'Should the limit also count tries with a valid token? I assume **no**.' })
    for (let i = 0; i < 60; i++) e('log', { stream: i % 9 === 0 ? 'stderr' : 'stdout', text: `\u001b[3${1 + (i % 6)}m${i % 9 === 0 ? 'warning:' : 'ok'}\u001b[0m  agentsquad/internal/${pick(['api', 'store', 'event', 'flow'], i)}\t0.0${i}s\r\n` })
  }
  const messages = [
    { from: `member:${members[0].id}`, to: `member:${members[4].id}`, kind: 'question', body: 'Do we count tries per account as well, or only per address?' },
    { from: `member:${members[4].id}`, to: `member:${members[0].id}`, kind: 'answer', body: 'Both. Account first, it is the cheaper attack.' },
    { from: `user:${world.me.id}`, to: `member:${members[0].id}`, kind: 'nudge', body: 'Please keep the zero value usable.' },
    { from: `member:${members[0].id}`, to: 'squad', kind: 'note', body: 'The limiter’s file is mine for the next hour: `internal/api/limiter.go`.' },
  ].map((m, i) => ({ id: randomUUID(), squad_id: squad.id, task_id: tasks[0].id, created_at: at(30 - i * 7), ...m }))
  const comments = [{ id: randomUUID(), pull_id: pulls[0]?.id, author: 'Margaret', path: 'internal/api/limiter.go', line: 12, side: 'new', verdict: 'comment', body: 'A map that only grows. Who forgets old addresses?', created_at: at(12) }]
  const credentials = [{ id: randomUUID(), squad_id: squad.id, name: 'GitHub, fine-grained', kind: 'token', provider: 'github', hint: '…x7Qz', created_at: at(40000) }, { id: randomUUID(), name: 'Anthropic', kind: 'model_key', provider: 'anthropic', hint: '…9dAA', created_at: at(60000), rotated_at: at(900) }]
  const checks = [{ name: 'isolation', status: 'ok', detail: 'gVisor systrap starts in 0.12 s' }, { name: 'cgroups', status: 'ok', detail: 'v2, memory and cpu delegated' }, { name: 'git', status: 'ok', detail: '2.39.5' }, { name: 'disk', status: 'warning', detail: '8 GB free in the data folder', remedy: 'Free some space or move the data folder with --data.' }, { name: 'E2B', status: 'skipped', detail: 'no E2B_API_KEY' }, { name: 'GitHub token', status: 'failed', detail: 'The token may not write pull requests.', remedy: 'Give it “Pull requests: read and write” in GitHub’s settings.' }]

  const list = (items) => ({ body: { items } })
  const find = (rows, id) => rows.find((row) => row.id === id)
  const setTask = (task, change) => {
    Object.assign(task, change, { version: task.version + 1, updated_at: new Date().toISOString() })
    world.emit({ type: 'task_updated', task_id: task.id, payload: { ...task } })
    return task
  }
  const sample = (i) => Array.from({ length: 40 }, (_, j) => ({ at: at((40 - j) / 6), cpu_pct: Math.abs(Math.sin((i + j) / 5)) * 70 + (j % 7) * 3, memory_mb: 380 + j * 6 + (i % 5) * 40 }))

  world.handle = (method, path, query, body) => {
    const [, noun, id, verb] = path.split('/')
    const ofTask = query.get('task_id')
    if (method === 'GET') {
      if (noun === 'me') return { body: world.me }
      if (noun === 'squads') return list([squad, other])
      if (noun === 'members') return list(query.get('squad_id') === squad.id ? members : [])
      if (noun === 'repositories') return verb === 'conflicts' ? list(id === repositories[0].id ? conflicts : []) : list(query.get('squad_id') === squad.id ? repositories : [])
      if (noun === 'tasks' && verb === 'diff') return { body: DIFF }
      if (noun === 'tasks') return list(query.get('squad_id') === squad.id ? tasks : [])
      if (noun === 'executions') return list(executions.filter((e) => (!ofTask || e.task_id === ofTask) && (!query.get('member_id') || e.member_id === query.get('member_id')) && (!query.get('status') || e.status === query.get('status'))))
      if (noun === 'sandboxes' && id === 'pool') return list([{ provider: 'local', template: 'base', waiting: 2, min: 2, max: 6, hits: 41, misses: 3 }])
      if (noun === 'sandboxes' && verb === 'metrics') return list(sample(sandboxes.findIndex((s) => s.id === id)))
      if (noun === 'sandboxes' && verb === 'files') return path.endsWith('/content') ? { raw: 'package api\n\n// Limiter bounds tries per address.\ntype Limiter struct{}\n' } : list([{ name: 'internal', path: `${query.get('path')}/internal`, type: 'dir', size: 0 }, { name: 'README.md', path: `${query.get('path')}/README.md`, type: 'file', size: 2310, modified_at: at(50) }, { name: 'go.mod', path: `${query.get('path')}/go.mod`, type: 'file', size: 812, modified_at: at(300) }])
      if (noun === 'sandboxes') return list(sandboxes)
      if (noun === 'pulls') return verb === 'diff' ? { body: DIFF } : verb ? list(comments.filter((c) => c.pull_id === id)) : list(pulls)
      if (noun === 'messages') return list(messages)
      if (noun === 'credentials') return list(credentials)
      if (noun === 'users') return list([world.me])
      if (noun === 'doctor') return list(checks)
      if (noun === 'templates') return list([{ id: '1', name: 'base', provider: 'local', source: 'host', status: 'ready', cpu: 2, memory_mb: 2048, disk_mb: 8192, size_bytes: 412_000_000, created_at: at(4000) }])
      if (noun === 'tokens') return list([{ id: '1', kind: 'user', name: 'laptop', prefix: 'sq_4f2', scopes: [], created_at: at(400), last_used_at: at(3) }, { id: '2', kind: 'e2b', name: 'sdk', prefix: 'e2b_91', scopes: [], created_at: at(400) }])
      if (noun === 'insights') return { body: { executions: { succeeded: 41, failed: 4, cancelled: 2, running: 7 }, tasks: {}, cost_usd: 87.31, tokens_in: 9_120_000, tokens_out: 610_000, duration_ms: { count: 47, p50: 412_000, p95: 1_910_000 }, start_ms: { count: 60, p50: 143, p95: 310 }, pulls: {}, success_rate: 0.87 } }
      if (noun === 'git-operations') return list(Array.from({ length: 90 }, (_, i) => ({ id: String(i), kind: pick(['clone', 'push', 'commit', 'branch', 'rebase'], i), status: i % 23 === 4 ? 'failed' : 'succeeded', attempts: i % 11 === 0 ? 2 : 1, duration_ms: 20 + (i * 37) % 800, exit_code: 0, created_at: at(i) })))
      if (noun === 'version') return { body: { version: '0.1.0', go: 'go1.26.8', database: 'sqlite', schema: 7 } }
      if (noun === 'sse') return { body: { last_seq: seq, subscribers: 3, delivered: 10_321, cut_off: 0 } }
      if (noun === 'audit') return list(Array.from({ length: 30 }, (_, i) => ({ id: String(i), at: at(i * 7), actor: `user:${world.me.id}`, action: pick(['task.create', 'task.move', 'sandbox.kill', 'member.update'], i), subject: pick(tasks, i).id, remote: '127.0.0.1' })))
      if (noun === 'events') return list(world.events.filter((e) => e.execution_id === query.get('execution_id') && e.seq > Number(query.get('after') ?? 0)))
      if (noun === 'usage') {
        const by = query.get('by')
        const key = by === 'day' ? Array.from({ length: Number(query.get('days') ?? 14) }, (_, i) => at((Number(query.get('days') ?? 14) - 1 - i) * 1440).slice(0, 10)) : by === 'member' ? members.map((m) => m.id) : by === 'model' ? ['claude-sonnet', 'gpt-5-codex'] : tasks.slice(0, 8).map((t) => t.id)
        return list(key.map((k, i) => ({ key: k, tokens_in: 400_000 + ((i * 7919) % 900_000), tokens_out: 20_000 + ((i * 37) % 60_000), tokens_cached: 200_000, cost_usd: 2 + ((i * 31) % 17) / 2, calls: 20 + i })))
      }
      return null
    }
    if (noun === 'tasks' && method === 'POST' && !id) {
      const task = { id: randomUUID(), number: 101 + tasks.length, description: '', priority: 1, cost_usd: 0, position: tasks.length, version: 1, created_at: new Date().toISOString(), updated_at: new Date().toISOString(), status: 'todo', ...body }
      tasks.push(task)
      world.emit({ type: 'task_created', task_id: task.id, payload: { ...task } })
      return { status: 201, body: task }
    }
    if (noun === 'tasks' && id === 'bulk') return list(body.ids.map((each) => {
      const task = find(tasks, each)
      if (body.action === 'move') setTask(task, { status: body.status })
      if (body.action === 'assign') setTask(task, { assignee_id: body.assignee_id })
      return { id: each, ok: true }
    }))
    if (noun === 'tasks' && verb === 'move') {
      const task = find(tasks, id)
      if (body.status === 'done' && task.status !== 'in_review') return { error: [409, 'conflict', 'A task is done when its pull request is merged.'] }
      return { body: setTask(task, { status: body.status, position: body.position ?? task.position }) }
    }
    if (noun === 'tasks' && method === 'PATCH') return { body: setTask(find(tasks, id), body) }
    if (noun === 'tasks' && ['run', 'retry', 'fork'].includes(verb)) return { error: [503, 'unavailable', 'The runner is not there yet.'] }
    if (noun === 'tasks' && verb === 'cancel') return { body: setTask(find(tasks, id), { flag: 'cancelled', cause: body.cause }) }
    if (noun === 'pulls' && verb === 'reviews') {
      const comment = { id: randomUUID(), pull_id: id, author: world.me.name, created_at: new Date().toISOString(), ...body }
      comments.push(comment)
      world.emit({ type: 'review_received', payload: comment })
      return { status: 201, body: comment }
    }
    if (noun === 'pulls' && verb === 'merge') {
      const pull = Object.assign(find(pulls, id), { state: 'merged', updated_at: new Date().toISOString() })
      world.emit({ type: 'pr_merged', task_id: pull.task_id, payload: { ...pull } })
      setTask(find(tasks, pull.task_id), { status: 'done' })
      return { body: pull }
    }
    if (noun === 'messages' && method === 'POST') {
      const message = { id: randomUUID(), from: `user:${world.me.id}`, created_at: new Date().toISOString(), ...body }
      messages.push(message)
      world.emit({ type: 'message_sent', payload: message })
      return { status: 201, body: message }
    }
    if (noun === 'sandboxes' && id) {
      const sandbox = find(sandboxes, id)
      if (method === 'DELETE') sandbox.status = 'terminated'
      else if (verb === 'pause') sandbox.status = 'paused'
      else if (verb === 'resume') sandbox.status = 'running'
      world.emit({ type: 'sandbox_status', sandbox_id: id, payload: { ...sandbox } })
      return method === 'DELETE' ? { status: 204 } : { body: sandbox }
    }
    if (method === 'PATCH' && noun === 'members') return { body: Object.assign(find(members, id), body) }
    if (method === 'PATCH' && noun === 'squads') return { body: Object.assign(squad, body) }
    return { error: [503, 'unavailable', `${method} ${path} is not there yet.`] }
  }

  let beat = 0
  world.tick = () => {
    const running = executions.filter((e) => e.status === 'running')
    for (let n = 0; n < Math.max(1, running.length / 12); n++) {
      const execution = running[beat++ % running.length]
      if (!execution) return
      const task = find(tasks, execution.task_id)
      const keysOf = { task_id: task.id, execution_id: execution.id, member_id: execution.member_id, sandbox_id: execution.sandbox_id }
      execution.percent = (execution.percent + 17) % 100
      const commands = ['go test ./...', 'npm run lint', 'git diff --stat', 'rg limiter internal', 'go vet ./...']
      execution.liveness = { state: pick(['command', 'model', 'command', 'working'], beat), detail: pick(commands, beat), since: new Date().toISOString() }
      world.emit({ type: 'execution_updated', ...keysOf, payload: { ...execution } })
      world.emit({ type: 'log', ...keysOf, payload: { stream: 'stdout', text: `[${new Date().toISOString().slice(11, 19)}] ${pick(commands, beat)} … ok\r\n` } })
      if (beat % 5 === 0) world.emit({ type: 'tool_call', ...keysOf, payload: { id: `live${beat}`, title: pick(commands, beat), kind: 'execute', status: 'completed', command: pick(commands, beat), exit_code: beat % 15 === 0 ? 1 : 0, duration_ms: 400 + beat * 3, output: 'ok' } })
      if (beat % 7 === 0) world.emit({ type: 'thought', ...keysOf, payload: { id: `th${beat}`, text: 'One more look at the edge: what if the clock goes backwards?' } })
    }
  }
  return world
}
