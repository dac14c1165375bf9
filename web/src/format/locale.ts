export const locale = () => (typeof navigator === 'undefined' ? 'en' : navigator.language)

/** Keeps what it has made for an argument: to make a formatter costs a thousand times what it costs to use it. */
export function keep<A extends string | number, T>(make: (of: A) => T): (of: A) => T {
  const made = new Map<A, T>()
  return (of) => {
    const there = made.get(of)
    if (there) return there
    const fresh = make(of)
    made.set(of, fresh)
    return fresh
  }
}
