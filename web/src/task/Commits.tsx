import { GitCommitHorizontal } from 'lucide-react'
import type { Commit } from '@/api/types'
import { Time } from '@/ui/Time'

export function Commits({ commits }: { commits: Commit[] }) {
  return (
    <div>
      <h4 className="mb-2 text-xs font-medium text-muted">Commits</h4>
      {commits.length === 0 && <p className="text-sm text-faint">None yet.</p>}
      <ol className="space-y-1.5 text-sm">
        {commits.map((commit) => (
          <li key={commit.sha} className="flex items-baseline gap-2">
            <GitCommitHorizontal aria-hidden className="size-4 shrink-0 translate-y-0.5 text-faint" />
            <span className="min-w-0 flex-1 break-words">{commit.subject}</span>
            <code className="font-mono text-xs text-faint">{commit.sha.slice(0, 7)}</code>
            <span className="text-xs text-faint"><Time at={commit.at} short /></span>
          </li>
        ))}
      </ol>
    </div>
  )
}
