import { queryOptions } from '@tanstack/react-query'
import { all, api, apiPath, request } from './client'
import { keys } from './keys'
import type { Diff, FileInfo, PoolState, Sandbox, SandboxRequest, SandboxSample } from './types'

export const sandboxesQuery = (squad: string) =>
  queryOptions({ queryKey: keys.sandboxes(squad), queryFn: ({ signal }) => all<Sandbox>('/sandboxes', { squad_id: squad, status: 'created,running,paused,error' }, 2000, signal) })

/** Those of every squad that one may see, the newest first, gone ones too. */
export const allSandboxesQuery = queryOptions({ queryKey: keys.allSandboxes, queryFn: ({ signal }) => all<Sandbox>('/sandboxes', { newest: true, limit: 500 }, 500, signal) })

export const samplesQuery = (id: string) =>
  queryOptions({ queryKey: keys.samples(id), queryFn: ({ signal }) => all<SandboxSample>(`/sandboxes/${id}/metrics`, {}, 200, signal), refetchInterval: 10_000, retry: false })

export const poolQuery = queryOptions({ queryKey: keys.pool, queryFn: ({ signal }) => all<PoolState>('/sandboxes/pool', {}, 100, signal), refetchInterval: 15_000, retry: false })

export const filesQuery = (id: string, path: string) =>
  queryOptions({ queryKey: keys.files(id, path), queryFn: ({ signal }) => all<FileInfo>(`/sandboxes/${id}/files`, { path }, 5000, signal), retry: false })

const LARGEST_VIEW = 512 * 1024

export interface Viewed { text: string; truncated: boolean; binary: boolean }

export const fileQuery = (id: string, path: string) =>
  queryOptions({
    queryKey: keys.file(id, path),
    retry: false,
    queryFn: async ({ signal }): Promise<Viewed> => {
      const answer = await request(`/sandboxes/${id}/files/content`, { query: { path }, signal })
      const body = new Uint8Array(await answer.arrayBuffer())
      const binary = body.subarray(0, 8000).includes(0)
      return { binary, truncated: body.length > LARGEST_VIEW, text: binary ? '' : new TextDecoder().decode(body.subarray(0, LARGEST_VIEW)) }
    },
  })

const post = (path: string, body: unknown = {}) => api<Sandbox>(`/sandboxes/${path}`, { method: 'POST', body })
export const pauseSandbox = (id: string) => post(`${id}/pause`)
export const resumeSandbox = (id: string) => post(`${id}/resume`)
export const forkSandbox = (id: string, count: number) => api<{ items: Sandbox[] }>(`/sandboxes/${id}/fork`, { method: 'POST', body: { count } })
export const killSandbox = (id: string) => api<void>(`/sandboxes/${id}`, { method: 'DELETE' })
export const contentURL = (id: string, path: string) => apiPath(`/sandboxes/${id}/files/content`, { path })
export const createSandbox = (body: SandboxRequest) => api<Sandbox>('/sandboxes', { method: 'POST', body })

/** The working tree of a sandbox against the base of its branch. */
export const sandboxDiffQuery = (id: string) => queryOptions({ queryKey: keys.sandboxDiff(id), queryFn: ({ signal }) => api<Diff>(`/sandboxes/${id}/diff`, { signal }), staleTime: 0, retry: false })
