import { useEffect, useRef } from 'react'

/**
 * Goes elsewhere once. The router's own <Navigate> goes again at each change of
 * the location, and a page that is loaded by need would never come to be shown.
 */
export function Once({ go }: { go: () => void }) {
  const went = useRef(false)
  useEffect(() => {
    if (went.current) return
    went.current = true
    go()
  }, [go])
  return null
}
