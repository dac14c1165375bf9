import type { SquadEvent, StepProgress } from '@/api/types'
import { stepIndex } from '@/board/steps'

export interface StepLine extends StepProgress { at: string; tries: number }

/** The newest state of each step of each turn, in the order of the recipe. A fetch tells how far it is before the sandbox stands. */
export function stepsOf(events: SquadEvent[]): StepLine[] {
  const lines: StepLine[] = []
  for (const event of events) {
    if (event.type !== 'step') continue
    const at = lines.findLastIndex((line) => line.step === event.payload.step)
    const open = lines[at]
    if (open && open.status !== 'succeeded' && open.status !== 'failed') lines[at] = { ...event.payload, at: open.at, tries: open.tries + (event.payload.status === 'retrying' ? 1 : 0) }
    else {
      const later = lines.findIndex((line) => line.status === 'running' && stepIndex(line.step) > stepIndex(event.payload.step))
      lines.splice(later < 0 ? lines.length : later, 0, { ...event.payload, at: event.at, tries: 1 })
    }
  }
  return lines
}
