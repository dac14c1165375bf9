import { useQuery } from '@tanstack/react-query'
import { auditQuery, usersQuery } from '@/api/system'
import { ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'

export function Audit() {
  const audit = useQuery(auditQuery)
  const users = useQuery(usersQuery)
  const nameOf = (actor: string) => {
    const [kind, id] = actor.split(':')
    return kind === 'user' ? (users.data?.find((user) => user.id === id)?.name ?? 'a former user') : kind === 'system' ? 'Agent Squad' : actor.slice(0, 15)
  }
  return (
    <section aria-label="Audit log" className="rounded-lg border bg-surface p-4 shadow-card">
      <h2 className="mb-3 text-sm font-semibold">Audit log</h2>
      {audit.isPending && <Rows what="the audit log" />}
      {audit.isError && !audit.data && <ErrorState error={audit.error} what="The audit log" retry={() => void audit.refetch()} />}
      {audit.data?.length === 0 && <p className="py-6 text-center text-sm text-faint">Nothing was changed so far.</p>}
      {audit.data && audit.data.length > 0 && (
        <div className="max-h-96 overflow-auto" tabIndex={0} role="region" aria-label="Entries of the audit log">
          <table className="w-full text-left text-sm">
            <thead className="sticky top-0 bg-surface text-xs text-faint"><tr><th className="py-1.5 pr-4 font-medium">When</th><th className="py-1.5 pr-4 font-medium">Who</th><th className="py-1.5 pr-4 font-medium">What</th><th className="py-1.5 font-medium">On</th></tr></thead>
            <tbody>
              {audit.data.map((entry) => (
                <tr key={entry.id} className="border-t">
                  <td className="py-1.5 pr-4 whitespace-nowrap text-muted"><Time at={entry.at} /></td>
                  <td className="py-1.5 pr-4 whitespace-nowrap">{nameOf(entry.actor)}</td>
                  <td className="py-1.5 pr-4 whitespace-nowrap">{entry.action}</td>
                  <td className="py-1.5 font-mono text-xs text-faint">{entry.subject}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
