import { createContext, useContext } from 'react'

export interface Ask {
  title: string
  /** What will be gone afterwards, in words. */
  lost: string
  verb: string
}

export const ConfirmContext = createContext<(ask: Ask) => Promise<boolean>>(() => Promise.resolve(false))

export const useConfirm = () => useContext(ConfirmContext)
