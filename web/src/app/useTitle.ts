import { useLayoutEffect } from 'react'

const HOUSE = 'Agent Squad'

/**
 * Names the page in the window and in the history of the browser. The next page names
 * itself: one that took its name back as it is left would also do so while it waits for
 * a part of itself.
 */
export function useTitle(words: string): void {
  useLayoutEffect(() => { document.title = words ? `${words} · ${HOUSE}` : HOUSE }, [words])
}
