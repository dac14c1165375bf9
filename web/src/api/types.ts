// The vocabulary of the wire, as the page uses it. Times are RFC 3339 strings;
// src/format turns them into words where they are shown.

export type TaskStatus = 'backlog' | 'todo' | 'in_progress' | 'in_review' | 'done'
export type TaskFlag = '' | 'blocked' | 'failed' | 'cancelled'
export type Step = 'sandbox' | 'clone' | 'branch' | 'agent' | 'commit' | 'push' | 'pull_request' | 'review' | 'cleanup'
export type ExecutionStatus = 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'
export type SandboxStatus = 'created' | 'running' | 'paused' | 'terminated' | 'error'

export interface Budget { task_usd?: number; day_usd?: number; total_usd?: number; tokens?: number }

export interface Squad {
  id: string
  name: string
  description: string
  status: 'active' | 'paused' | 'archived'
  config: SquadConfig
  created_at: string
  updated_at: string
}

export interface SquadConfig {
  provider?: string
  template?: string
  max_running?: number
  budget?: Budget
  egress?: string[]
  allow_commands?: string[]
  deny_commands?: string[]
  cleanup?: { keep_sandbox?: number; keep_branch?: boolean }
  max_attempts?: number
}

export interface Member {
  id: string
  squad_id: string
  name: string
  role: string
  specialization: string
  llm_provider: string
  llm_model: string
  system_prompt: string
  config: MemberConfig
  is_active: boolean
  sandbox_id?: string
  current_task_id?: string
  git_context?: { repository_id?: string; path?: string; branch?: string; base_branch?: string; head?: string }
  created_at: string
  updated_at: string
}

export type AgentKind = 'command' | 'acp' | 'llm'

export interface MemberConfig {
  agent?: AgentKind
  preset?: string
  command?: string
  env?: Record<string, string>
  base_url?: string
  max_turns?: number
  max_running?: number
  timeout?: number
  budget?: Budget
  author_name?: string
  author_mail?: string
  template?: string
}

export interface Repository {
  id: string
  squad_id: string
  name: string
  forge: 'local' | 'github' | 'gitea'
  url: string
  api_url?: string
  default_branch: string
  credential_id?: string
  pr_template?: string
  reviewers?: string[]
  policy?: RepositoryPolicy
  created_at: string
  updated_at: string
}

export interface RepositoryPolicy {
  path?: string
  max_push_bytes?: number
  merge_method?: 'merge' | 'squash' | 'rebase'
  merge_train?: boolean
  labels?: string[]
  draft?: boolean
  check_command?: string
}

export interface Task {
  id: string
  number: number
  squad_id: string
  repository_id?: string
  title: string
  description: string
  status: TaskStatus
  flag?: TaskFlag
  cause?: string
  priority: number
  labels?: string[]
  assignee_id?: string
  depends_on?: string[]
  base_branch?: string
  git_branch?: string
  pull_request_url?: string
  budget?: Budget
  execution_id?: string
  cost_usd: number
  position: number
  created_by?: string
  version: number
  created_at: string
  updated_at: string
}

export interface Liveness { state?: string; detail?: string; since?: string }
export interface Commit { sha: string; subject: string; author: string; at: string }

export interface Execution {
  id: string
  task_id: string
  squad_id: string
  member_id?: string
  sandbox_id?: string
  status: ExecutionStatus
  step?: Step
  percent?: number
  liveness?: Liveness
  attempt: number
  turn: number
  git_branch?: string
  base_sha?: string
  head_sha?: string
  pull_request_url?: string
  commit_history?: Commit[]
  error?: string
  error_code?: string
  tokens_in: number
  tokens_out: number
  tokens_cached: number
  model_cost_usd: number
  sandbox_cost_usd: number
  created_at: string
  started_at?: string
  finished_at?: string
}

export interface Sandbox {
  id: string
  provider: string
  e2b_id?: string
  squad_id?: string
  agent_id?: string
  task_id?: string
  execution_id?: string
  repo_url?: string
  template: string
  status: SandboxStatus
  error?: string
  pooled: boolean
  node?: string
  cpu: number
  memory_mb: number
  epoch: number
  command_count: number
  create_ms: number
  cost_usd: number
  created_at: string
  last_used_at: string
  expires_at?: string
  terminated_at?: string
}

export interface SandboxSample { at: string; cpu_pct: number; memory_mb: number; disk_mb?: number }
export interface PoolState { provider: string; template: string; waiting: number; min: number; max: number; hits: number; misses: number }
export interface FileInfo { name: string; path: string; type: 'file' | 'dir' | 'symlink' | 'other'; size: number; mode?: string; target?: string; modified_at?: string }

export interface GitOperation {
  id: string
  sandbox_id?: string
  execution_id?: string
  kind: string
  status: 'running' | 'succeeded' | 'failed'
  attempts: number
  duration_ms: number
  exit_code: number
  output_tail?: string
  created_at: string
}
export interface GitProgress extends GitOperation { phase?: string; percent?: number }

export interface PullRequest {
  id: string
  repository_id: string
  task_id?: string
  number: number
  url: string
  title: string
  body: string
  state: 'open' | 'merged' | 'closed'
  draft: boolean
  head: string
  base: string
  head_sha: string
  merge_sha?: string
  mergeable: 'unknown' | 'clean' | 'conflict' | 'blocked'
  checks: 'none' | 'pending' | 'success' | 'failure'
  review: 'none' | 'pending' | 'approved' | 'changes_requested'
  author?: string
  labels?: string[]
  reviewers?: string[]
  created_at: string
  updated_at: string
  merged_at?: string
}

export interface ReviewComment {
  id: string
  pull_id: string
  author: string
  path?: string
  line?: number
  side?: 'old' | 'new'
  verdict?: 'comment' | 'approve' | 'request_changes'
  body: string
  created_at: string
}

export interface Message {
  id: string
  squad_id: string
  task_id?: string
  execution_id?: string
  from: string
  to: string
  kind: 'note' | 'question' | 'answer' | 'escalation' | 'review' | 'nudge'
  body: string
  read_at?: string
  created_at: string
}

export interface FileDiff {
  path: string
  old_path?: string
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'copied'
  binary?: boolean
  additions: number
  deletions: number
  patch?: string
}
export interface Diff { base: string; head?: string; files: FileDiff[]; truncated?: boolean }
export interface Conflict { repository_id: string; task_id: string; other_task_id?: string; files: string[] }
export interface Check { name: string; status: 'ok' | 'warning' | 'failed' | 'skipped'; detail: string; remedy?: string }

export interface Credential {
  id: string
  squad_id?: string
  name: string
  kind: 'token' | 'github_app' | 'model_key' | 'e2b_key' | 'webhook' | 'sign_key'
  provider?: string
  hint?: string
  created_at: string
  rotated_at?: string
}

export interface User { id: string; name: string; email?: string; admin: boolean; created_at: string }
export interface AuditEntry { id: string; at: string; actor: string; action: string; subject: string; detail?: unknown; remote?: string }

// --- the agent's stream ---------------------------------------------------------

export interface Text { id?: string; text: string }
export interface ToolCall {
  id: string
  title: string
  kind: 'read' | 'edit' | 'execute' | 'search' | 'fetch' | 'think' | 'other'
  status: 'pending' | 'running' | 'completed' | 'failed'
  command?: string
  exit_code?: number
  duration_ms?: number
  paths?: string[]
  input?: unknown
  output?: string
}
export interface PlanEntry { text: string; status: 'pending' | 'in_progress' | 'completed' }
export interface Plan { entries: PlanEntry[] }
export interface LogChunk { stream: 'stdout' | 'stderr' | 'pty' | 'system'; text: string }
export interface StepProgress { step: Step; status: 'running' | 'succeeded' | 'failed' | 'retrying'; percent?: number; detail?: string; duration_ms?: number }
export interface UsageRow { id: string; execution_id?: string; task_id?: string; member_id?: string; provider: string; model: string; tokens_in: number; tokens_out: number; tokens_cached: number; cost_usd: number; at: string }

interface EventOf<T extends string, P> {
  seq: number
  type: T
  at: string
  squad_id?: string
  task_id?: string
  execution_id?: string
  member_id?: string
  sandbox_id?: string
  repository_id?: string
  payload: P
}

/** Every kind of event that the page understands; others are ignored. */
export type SquadEvent =
  | EventOf<'squad_changed', Squad>
  | EventOf<'member_changed', Member>
  | EventOf<'repository_changed', Repository>
  | EventOf<'task_created' | 'task_updated', Task>
  | EventOf<'task_deleted', { id: string }>
  | EventOf<'execution_created' | 'execution_updated', Execution>
  | EventOf<'sandbox_created' | 'sandbox_status' | 'sandbox_terminated', Sandbox>
  | EventOf<'git_operation', GitProgress>
  | EventOf<'message_sent', Message>
  | EventOf<'pr_created' | 'pr_updated' | 'pr_merged' | 'pr_closed' | 'checks_changed', PullRequest>
  | EventOf<'review_received', ReviewComment>
  | EventOf<'conflict_detected' | 'conflict_cleared', Conflict>
  | EventOf<'egress_refused', { sandbox_id?: string; host: string; rule: string }>
  | EventOf<'budget_reached', { scope: string; limit_usd: number; spent_usd: number }>
  | EventOf<'message' | 'thought' | 'question', Text>
  | EventOf<'tool_call', ToolCall>
  | EventOf<'plan', Plan>
  | EventOf<'usage', UsageRow>
  | EventOf<'log', LogChunk>
  | EventOf<'step', StepProgress>

export type EventType = SquadEvent['type']

export const EVENT_TYPES: readonly EventType[] = [
  'squad_changed', 'member_changed', 'repository_changed', 'task_created', 'task_updated', 'task_deleted',
  'execution_created', 'execution_updated', 'sandbox_created', 'sandbox_status', 'sandbox_terminated', 'git_operation',
  'message_sent', 'pr_created', 'pr_updated', 'pr_merged', 'pr_closed', 'checks_changed', 'review_received',
  'conflict_detected', 'conflict_cleared', 'egress_refused', 'budget_reached',
  'message', 'thought', 'question', 'tool_call', 'plan', 'usage', 'log', 'step',
]

export interface Page<T> { items: T[]; next?: string }

export interface Template {
  id: string
  name: string
  squad_id?: string
  provider: string
  source?: string
  status: 'building' | 'ready' | 'error'
  error?: string
  cpu: number
  memory_mb: number
  disk_mb: number
  size_bytes: number
  created_at: string
}

export interface APIToken {
  id: string
  user_id?: string
  kind: 'user' | 'agent' | 'e2b' | 'session' | 'sign_in'
  name: string
  scopes: string[] | null
  prefix: string
  expires_at?: string
  last_used_at?: string
  created_at: string
}
