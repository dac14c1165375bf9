import { useQuery } from '@tanstack/react-query'
import { repositoryChecksQuery } from '@/api/squads'
import { Checks } from '@/ui/Checks'
import { Spinner } from '@/ui/Spinner'
import { ErrorState } from '@/ui/States'

/** Can the repository be read, pushed to and reviewed with its credential? Asked of the forge now. */
export function RepositoryChecks({ id }: { id: string }) {
  const checks = useQuery(repositoryChecksQuery(id))
  return (
    <div role="region" aria-label="What the check found" className="mt-3 rounded-lg bg-canvas p-3 sm:ml-8">
      {checks.isFetching && !checks.data && <Spinner label="Asking the forge…" />}
      {checks.isError && !checks.data && <ErrorState error={checks.error} what="The check" retry={() => void checks.refetch()} />}
      {checks.data && <Checks checks={checks.data} />}
      {checks.data?.length === 0 && <p className="text-sm text-muted">There is nothing to check.</p>}
    </div>
  )
}
