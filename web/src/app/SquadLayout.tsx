import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { squadsQuery } from '@/api/squads'
import { Spinner } from '@/ui/Spinner'
import { ErrorState } from '@/ui/States'
import { NotHere } from './NotHere'
import { SquadContext } from './SquadContext'
import { rememberSquad } from './squadChoice'

export function SquadLayout() {
  const { squadId } = useParams({ from: '/frame/squads/$squadId' })
  const squads = useQuery(squadsQuery)
  const squad = squads.data?.find((each) => each.id === squadId)
  if (squads.isPending) return <div className="flex h-full items-center justify-center"><Spinner label="Loading…" /></div>
  if (squads.isError && !squads.data) return <ErrorState error={squads.error} what="The squad" retry={() => void squads.refetch()} />
  if (!squad) return <NotHere title="This squad does not exist">It may have been removed, or it is not yours to see.</NotHere>
  rememberSquad(squad.id)
  return <SquadContext value={squad}><Outlet /></SquadContext>
}
