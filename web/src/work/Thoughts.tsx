import { Brain } from 'lucide-react'
import { Empty, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { Feed } from './Feed'
import type { Thought } from './items'

export function Thoughts({ thoughts, pending }: { thoughts: Thought[]; pending: boolean }) {
  if (pending) return <Rows what="the thoughts" />
  if (thoughts.length === 0) return <Empty icon={<Brain aria-hidden />} title="No thoughts were shared">Not every agent tells what it thinks.</Empty>
  return (
    <Feed
      items={thoughts} keyOf={(thought) => thought.key} label="Thoughts" estimate={80}
      row={(thought) => (
        <div className="flex gap-4 border-l-2 border-line py-2 pl-4 text-sm">
          <p className="min-w-0 flex-1 leading-relaxed break-words whitespace-pre-wrap text-muted italic">{thought.text}</p>
          <span className="text-xs text-faint"><Time at={thought.at} short /></span>
        </div>
      )}
    />
  )
}
