import { createContext, useContext } from 'react'
import type { LiveState } from './stream'

export const LiveContext = createContext<LiveState>('connecting')
export const useLive = () => useContext(LiveContext)
