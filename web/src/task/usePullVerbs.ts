import { useMutation, useQueryClient } from '@tanstack/react-query'
import { keys } from '@/api/keys'
import { mergePull, readyPull, refreshPull, review } from '@/api/pulls'
import type { NewReview, PullRequest, ReviewComment } from '@/api/types'
import { upsert } from '@/live/reduce'
import { say } from '@/ui/toast'

export function usePullVerbs(squad: string, pull: PullRequest) {
  const cache = useQueryClient()
  const take = (row: PullRequest) => cache.setQueryData<PullRequest[]>(keys.pulls(squad), (list) => upsert(list, row))
  return {
    merge: useMutation({ mutationFn: () => mergePull(pull.id), meta: { failed: 'It was not merged' }, onSuccess: (row) => { take(row); say(`Pull request ${pull.number} is merged`) } }),
    ready: useMutation({ mutationFn: () => readyPull(pull.id), meta: { failed: 'It stays a draft' }, onSuccess: (row) => { take(row); say(`Pull request ${pull.number} is ready for review`) } }),
    refresh: useMutation({ mutationFn: () => refreshPull(pull.id), meta: { failed: 'It could not be read anew' }, onSuccess: take }),
    review: useMutation({
      mutationFn: (body: NewReview) => review(pull.id, body),
      meta: { failed: 'The review was not taken' },
      onSuccess: (comment) => {
        cache.setQueryData<ReviewComment[]>(keys.comments(pull.id), (list) => upsert(list, comment))
        void cache.invalidateQueries({ queryKey: keys.pulls(squad) })
      },
    }),
  }
}
