import { queryOptions } from '@tanstack/react-query'
import { all, api } from './client'
import { keys } from './keys'
import type { Diff, NewReview, PullRequest, ReviewComment } from './types'

export const pullsQuery = (squad: string) =>
  queryOptions({ queryKey: keys.pulls(squad), queryFn: ({ signal }) => all<PullRequest>('/pulls', { squad_id: squad }, 2000, signal) })

export const pullDiffQuery = (pull: string) => queryOptions({ queryKey: keys.pullDiff(pull), queryFn: ({ signal }) => api<Diff>(`/pulls/${pull}/diff`, { signal }) })

export const commentsQuery = (pull: string) =>
  queryOptions({ queryKey: keys.comments(pull), queryFn: ({ signal }) => all<ReviewComment>(`/pulls/${pull}/reviews`, {}, 1000, signal) })

export const review = (pull: string, body: NewReview) => api<ReviewComment>(`/pulls/${pull}/reviews`, { method: 'POST', body })
export const mergePull = (pull: string, method = '') => api<PullRequest>(`/pulls/${pull}/merge`, { method: 'POST', body: { method } })
export const readyPull = (pull: string) => api<PullRequest>(`/pulls/${pull}/ready`, { method: 'POST', body: {} })
export const refreshPull = (pull: string) => api<PullRequest>(`/pulls/${pull}/refresh`, { method: 'POST', body: {} })
