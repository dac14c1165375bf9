import { queryOptions } from '@tanstack/react-query'
import { all, api } from './client'
import { keys } from './keys'
import type { APIToken, AuditEntry, Check, GitOperation, Insights, NewTemplate, NewToken, SignInLink, Template, UsageRow, User, Version } from './types'

export interface StreamStats { last_seq?: number; subscribers?: number; [name: string]: unknown }

export const doctorQuery = queryOptions({ queryKey: keys.doctor, queryFn: ({ signal }) => all<Check>('/doctor', {}, 500, signal), staleTime: 60_000, retry: false })
export const versionQuery = queryOptions({ queryKey: keys.version, queryFn: ({ signal }) => api<Version>('/version', { signal }), staleTime: Infinity, retry: false })
export const streamsQuery = queryOptions({ queryKey: keys.streams, queryFn: ({ signal }) => api<StreamStats>('/sse/stats', { signal }), refetchInterval: 5000, retry: false })
export const auditQuery = queryOptions({ queryKey: keys.audit, queryFn: ({ signal }) => all<AuditEntry>('/audit', { limit: 200 }, 200, signal), retry: false })
export const usersQuery = queryOptions({ queryKey: keys.users, queryFn: ({ signal }) => all<User>('/users', {}, 1000, signal), retry: false })

export const usageQuery = (squad: string, by: 'day' | 'member' | 'task' | 'model', days: number) =>
  queryOptions({
    queryKey: keys.usage(squad, by, days),
    staleTime: 30_000,
    queryFn: ({ signal }) => all<UsageRow>('/usage', { squad_id: squad, by, days }, 1000, signal),
  })

/** Builds tell nothing through the stream, so a list with one in it is read again until it ended. */
export const templatesQuery = queryOptions({
  queryKey: keys.templates,
  queryFn: ({ signal }) => all<Template>('/templates', {}, 500, signal),
  retry: false,
  refetchInterval: (query) => (query.state.data?.some((each) => each.status === 'building') ? 1500 : false),
})
export const buildTemplate = (body: NewTemplate) => api<Template>('/templates', { method: 'POST', body })
export const deleteTemplate = (id: string) => api<void>(`/templates/${id}`, { method: 'DELETE' })

export const createUser = (body: { name: string; email?: string; admin?: boolean }) => api<User>('/users', { method: 'POST', body, once: true })
export const signInLink = (user: string) => api<SignInLink>(`/users/${user}/sign-in-link`, { method: 'POST', body: {} })

export const insightsQuery = (squad: string, days: number) =>
  queryOptions({ queryKey: keys.insights(squad, days), staleTime: 30_000, queryFn: ({ signal }) => api<Insights>('/insights', { query: { squad_id: squad, days }, signal }) })

/** The newest git operations of a squad. */
export const gitOperationsQuery = (squad: string) =>
  queryOptions({ queryKey: keys.gitOperations(squad), queryFn: ({ signal }) => all<GitOperation>('/git-operations', { squad_id: squad, newest: true, limit: 2000 }, 2000, signal), staleTime: 30_000, retry: false })

export const tokensQuery = queryOptions({ queryKey: keys.tokens, queryFn: ({ signal }) => all<APIToken>('/tokens', {}, 1000, signal), retry: false })
export const createToken = (body: NewToken) => api<APIToken & { secret: string }>('/tokens', { method: 'POST', body })
export const deleteToken = (id: string) => api<void>(`/tokens/${id}`, { method: 'DELETE' })
