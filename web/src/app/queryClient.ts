import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { Problem, wordsOf } from '@/api/client'
import { keys } from '@/api/keys'
import { say } from '@/ui/toast'

// Server data stays fresh through the stream, so nothing is polled or refetched
// on focus. A session that ended empties `me`, and the page shows the sign-in.
export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error) => endSession(error) }),
  mutationCache: new MutationCache({
    onError: (error, _variables, _context, mutation) => {
      endSession(error)
      if (error instanceof Problem && error.status === 403) void queryClient.invalidateQueries({ queryKey: keys.me }) // a role was taken away meanwhile
      if (mutation.meta?.quiet) return
      say(String(mutation.meta?.failed ?? 'That did not work'), 'danger', wordsOf(error))
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5 * 60_000,
      gcTime: 15 * 60_000,
      refetchOnWindowFocus: false,
      // Events replace only the rows they name, so rows keep their identity without a
      // deep comparison of whole lists, which would cost more than drawing them.
      structuralSharing: false,
      retry: (count, error) => !(error instanceof Problem && error.status >= 400 && error.status < 500) && !(error instanceof Problem && error.isNotThereYet) && count < 2,
    },
  },
})

function endSession(error: unknown) {
  if (error instanceof Problem && error.isSignedOut) queryClient.setQueryData(keys.me, null)
}
