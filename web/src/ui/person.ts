/** A steady hue for an identifier. */
export function hueOf(id: string): number {
  let hash = 2166136261
  for (const char of id) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 16777619)
  return (hash >>> 0) % 360
}

export function initials(name: string): string {
  const words = name.split(/[\s_-]+/).filter(Boolean)
  const letters = words.length > 1 ? [words[0]?.[0], words.at(-1)?.[0]] : [...(words[0] ?? '?')].slice(0, 2)
  return letters.join('').toUpperCase()
}
