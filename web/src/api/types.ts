// The vocabulary of the wire, as the page uses it: short names for the generated
// shapes, and the events, whose payloads the document leaves open. Times are
// RFC 3339 strings; src/format turns them into words where they are shown.
import type { components } from './types.gen'

type Shapes = components['schemas']

export type Budget = Shapes['Budget']
export type Squad = Shapes['Squad']
export type SquadConfig = Shapes['SquadConfig']
export type Member = Shapes['Member']
export type MemberConfig = Shapes['MemberConfig']
export type Repository = Shapes['Repository']
export type RepositoryPolicy = Shapes['RepositoryPolicy']
export type Task = Shapes['Task']
export type Liveness = Shapes['Liveness']
export type Commit = Shapes['Commit']
export type Execution = Shapes['Execution']
export type Sandbox = Shapes['Sandbox']
export type SandboxSample = Shapes['SandboxSample']
export type PoolState = Shapes['PoolState']
export type FileInfo = Shapes['FileInfo']
export type GitOperation = Shapes['GitOperation']
export type PullRequest = Shapes['PullRequest']
export type ReviewComment = Shapes['ReviewComment']
export type Message = Shapes['Message']
export type FileDiff = Shapes['FileDiff']
export type Diff = Shapes['Diff']
export type Conflict = Shapes['Conflict']
export type Check = Shapes['Check']
export type Credential = Shapes['Credential']
export type User = Shapes['User']
export type AuditEntry = Shapes['AuditEntry']
export type Template = Shapes['Template']
export type NewTemplate = Shapes['NewTemplate']
export type SquadUser = Shapes['SquadUser']
export type Me = Shapes['Me']
export type SignInLink = Shapes['SignInLink']
export type SandboxRequest = Shapes['SandboxRequest']
export type APIToken = Shapes['APIToken']
export type NewTask = Shapes['NewTask']
export type TaskChange = Shapes['TaskChange']
export type TaskBulk = Shapes['TaskBulk']
export type BulkResult = Shapes['BulkResult']
export type NewReview = Shapes['NewReview']
export type NewToken = Shapes['NewToken']
export type UsageRow = Shapes['UsageRow']
export type Insights = Shapes['Insights']
export type Version = Shapes['Version']

export type TaskStatus = Task['status']
export type Step = 'sandbox' | 'clone' | 'branch' | 'agent' | 'commit' | 'push' | 'pull_request' | 'review' | 'cleanup'
export type ExecutionStatus = Execution['status']

export type AgentKind = NonNullable<MemberConfig['agent']>

export type GitProgress = GitOperation & { phase?: string; percent?: number }

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
export interface ModelCall { id: string; execution_id?: string; task_id?: string; member_id?: string; provider: string; model: string; tokens_in: number; tokens_out: number; tokens_cached: number; cost_usd: number; at: string }

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
  | EventOf<'usage', ModelCall>
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

