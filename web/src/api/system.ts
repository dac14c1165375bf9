import { queryOptions } from '@tanstack/react-query'
import { all, api } from './client'
import { keys } from './keys'
import type { AuditEntry, Check, User } from './types'

export interface Version { version: string; go?: string; commit?: string; database?: string; schema?: number }
export interface StreamStats { last_seq?: number; subscribers?: number; [name: string]: unknown }
export interface UsageRow { key: string; tokens_in: number; tokens_out: number; tokens_cached: number; cost_usd: number; calls: number }

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
