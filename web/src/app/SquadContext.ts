import { createContext, useContext } from 'react'
import type { Squad } from '@/api/types'

export const SquadContext = createContext<Squad | null>(null)

/** The squad whose page is open. */
export function useSquad(): Squad {
  const squad = useContext(SquadContext)
  if (!squad) throw new Error('useSquad outside of a squad page')
  return squad
}
