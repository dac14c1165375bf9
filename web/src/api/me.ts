import { queryOptions } from '@tanstack/react-query'
import { api } from './client'
import { keys } from './keys'
import type { Me, User } from './types'

/** Who is signed in. */
export const meQuery = queryOptions({ queryKey: keys.me, queryFn: ({ signal }) => api<Me>('/me', { signal }), staleTime: 60_000, refetchOnWindowFocus: true, retry: false })

export const signIn = (token: string) => api<User>('/session', { method: 'POST', body: { token } })
/** Ends the session, and with it everything the page holds. */
export async function leave() {
  await api<void>('/session', { method: 'DELETE' })
  location.assign('/sign-in')
}
