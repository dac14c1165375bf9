import type { SquadEvent, StepProgress } from '@/api/types'

export interface StepLine extends StepProgress { at: string; tries: number }

/** The newest state of each step of each turn, in the order in which they began. */
export function stepsOf(events: SquadEvent[]): StepLine[] {
  const lines: StepLine[] = []
  for (const event of events) {
    if (event.type !== 'step') continue
    const at = lines.findLastIndex((line) => line.step === event.payload.step)
    const open = lines[at]
    if (open && open.status !== 'succeeded' && open.status !== 'failed') lines[at] = { ...open, ...event.payload, tries: open.tries + (event.payload.status === 'retrying' ? 1 : 0) }
    else lines.push({ ...event.payload, at: event.at, tries: 1 })
  }
  return lines
}
