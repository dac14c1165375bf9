import { queryOptions } from '@tanstack/react-query'
import { api } from './client'
import { keys } from './keys'
import type { Me, User } from './types'

/** Who is signed in. */
export const meQuery = queryOptions({ queryKey: keys.me, queryFn: ({ signal }) => api<Me>('/me', { signal }), staleTime: Infinity, retry: false })

export const signIn = (token: string) => api<User>('/session', { method: 'POST', body: { token } })
export const signOut = () => api<void>('/session', { method: 'DELETE' })
