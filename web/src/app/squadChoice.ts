const KEY = 'squad.last'

/** The squad that was looked at last, to come back to. */
export function lastSquad(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}

export function rememberSquad(id: string) {
  try {
    localStorage.setItem(KEY, id)
  } catch {
    // storage is off: the first squad opens next time
  }
}
