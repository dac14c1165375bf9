import { useQuery } from '@tanstack/react-query'
import { meQuery } from '@/api/me'
import type { Me, SquadUser } from '@/api/types'

export type Role = SquadUser['role']

const RANKS = ['', 'viewer', 'member', 'admin']

/** What a person may be in a squad at most: their place there, within what their token allows. */
export function roleIn(me: Me | null | undefined, squad: string): Role | '' {
  if (!me) return ''
  const place = me.actor.admin ? 'admin' : (me.roles[squad] ?? '')
  const rank = Math.min(RANKS.indexOf(place), RANKS.indexOf(me.actor.ceiling ?? ''))
  return (RANKS[rank] ?? '') as Role | ''
}

/** Whether the server would let this person do what needs a role in a squad; the page offers nothing else. */
export function useMay(squad: string, least: Role): boolean {
  const me = useQuery(meQuery)
  return RANKS.indexOf(roleIn(me.data, squad)) >= RANKS.indexOf(least)
}

/** Whether they may change the installation itself. */
export function useAdministers(): boolean {
  const me = useQuery(meQuery)
  return me.data?.actor.admin === true && me.data.actor.ceiling === 'admin'
}
