export interface Command { group: string; name: string; hint?: string; run: () => void }

/** Commands that contain the letters of the text in order, the tightest match first. */
export function rank(commands: Command[], text: string, most: number): Command[] {
  const wanted = text.trim().toLowerCase()
  if (!wanted) return commands.slice(0, most)
  return commands
    .map((command) => ({ command, score: scoreOf(command.name.toLowerCase(), wanted) }))
    .filter(({ score }) => score < Infinity)
    .toSorted((a, b) => a.score - b.score)
    .slice(0, most)
    .map(({ command }) => command)
}

function scoreOf(name: string, wanted: string): number {
  const at = name.indexOf(wanted)
  if (at >= 0) return at === 0 || name[at - 1] === ' ' ? 0 : 1
  let from = 0
  let gaps = 2
  for (const char of wanted) {
    const next = name.indexOf(char, from)
    if (next < 0) return Infinity
    gaps += next - from
    from = next + 1
  }
  return gaps
}
