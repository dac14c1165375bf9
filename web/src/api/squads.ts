import { queryOptions } from '@tanstack/react-query'
import { all, api } from './client'
import { keys } from './keys'
import type { Check, Conflict, Credential, Member, Message, Repository, Squad, SquadUser } from './types'

export const squadsQuery = queryOptions({ queryKey: keys.squads, queryFn: ({ signal }) => all<Squad>('/squads', {}, 1000, signal) })

export const membersQuery = (squad: string) =>
  queryOptions({ queryKey: keys.members(squad), queryFn: ({ signal }) => all<Member>('/members', { squad_id: squad }, 1000, signal) })

export const repositoriesQuery = (squad: string) =>
  queryOptions({ queryKey: keys.repositories(squad), queryFn: ({ signal }) => all<Repository>('/repositories', { squad_id: squad }, 1000, signal) })

export const messagesQuery = (squad: string) =>
  queryOptions({ queryKey: keys.messages(squad), queryFn: ({ signal }) => all<Message>('/messages', { squad_id: squad }, 2000, signal) })

export const credentialsQuery = (squad: string) =>
  queryOptions({ queryKey: keys.credentials(squad), queryFn: ({ signal }) => all<Credential>('/credentials', { squad_id: squad }, 1000, signal) })

/** Overlaps of all repositories of a squad; the radar answers for one at a time. */
export const conflictsQuery = (squad: string, repositories: string[]) =>
  queryOptions({
    queryKey: keys.conflicts(squad),
    enabled: repositories.length > 0,
    queryFn: async ({ signal }) => {
      const lists = await Promise.all(repositories.map((id) => all<Conflict>(`/repositories/${id}/conflicts`, {}, 500, signal).catch(() => [])))
      return lists.flat()
    },
  })

export const createSquad = (body: { name: string; description?: string }) => api<Squad>('/squads', { method: 'POST', body, once: true })
export const changeSquad = (id: string, body: Partial<Squad>) => api<Squad>(`/squads/${id}`, { method: 'PATCH', body })

export const createMember = (body: Partial<Member> & { squad_id: string }) => api<Member>('/members', { method: 'POST', body, once: true })
export const changeMember = (id: string, body: Partial<Member>) => api<Member>(`/members/${id}`, { method: 'PATCH', body })
export const deleteMember = (id: string) => api<void>(`/members/${id}`, { method: 'DELETE' })

export const createRepository = (body: Partial<Repository> & { squad_id: string; import_path?: string }) => api<Repository>('/repositories', { method: 'POST', body, once: true })
export const changeRepository = (id: string, body: Partial<Repository>) => api<Repository>(`/repositories/${id}`, { method: 'PATCH', body })
/** Asks the forge whether the repository can be read, pushed to and reviewed with its credential. */
export const repositoryChecksQuery = (id: string) =>
  queryOptions({ queryKey: keys.repositoryChecks(id), queryFn: ({ signal }) => all<Check>(`/repositories/${id}/check`, {}, 100, signal), staleTime: 0, gcTime: 0, retry: false })
export const deleteRepository = (id: string) => api<void>(`/repositories/${id}`, { method: 'DELETE' })

export const createCredential = (body: { squad_id?: string; name: string; kind: Credential['kind']; provider?: string; secret: string }) =>
  api<Credential>('/credentials', { method: 'POST', body })
export const rotateCredential = (id: string, secret: string) => api<Credential>(`/credentials/${id}`, { method: 'PATCH', body: { secret } })
export const deleteCredential = (id: string) => api<void>(`/credentials/${id}`, { method: 'DELETE' })

export const sendMessage = (body: { squad_id: string; task_id?: string; execution_id?: string; to: string; kind?: Message['kind']; body: string }) =>
  api<Message>('/messages', { method: 'POST', body, once: true })

export const peopleQuery = (squad: string) =>
  queryOptions({ queryKey: keys.people(squad), queryFn: ({ signal }) => all<SquadUser>(`/squads/${squad}/users`, {}, 1000, signal) })
export const putPerson = (squad: string, user: string, role: SquadUser['role']) => api<SquadUser>(`/squads/${squad}/users/${user}`, { method: 'PUT', body: { role } })
export const removePerson = (squad: string, user: string) => api<void>(`/squads/${squad}/users/${user}`, { method: 'DELETE' })
