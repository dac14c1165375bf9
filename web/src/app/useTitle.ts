import { useLayoutEffect } from 'react'

const HOUSE = 'Agent Squad'

/** Names the page in the window and in the history of the browser. */
export function useTitle(words: string): void {
  useLayoutEffect(() => {
    document.title = words ? `${words} · ${HOUSE}` : HOUSE
    return () => { document.title = HOUSE }
  }, [words])
}
