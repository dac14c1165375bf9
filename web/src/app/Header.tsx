import { Eye } from 'lucide-react'
import { type ReactNode, useContext } from 'react'
import { Badge } from '@/ui/Badge'
import { useMay } from './may'
import { SquadContext } from './SquadContext'
import { useTitle } from './useTitle'

/** The line at the top of a page: what it is, and what can be done on it. */
export function Header({ title, name, about, children }: { title: ReactNode; name?: string; about?: ReactNode; children?: ReactNode }) {
  const squad = useContext(SquadContext)
  const may = useMay(squad?.id ?? '', 'member')
  useTitle(name ?? (typeof title === 'string' ? title : ''))
  return (
    <header className="flex min-h-13 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-b px-4 py-2 sm:px-5">
      <h1 className="-my-1 min-w-0 truncate py-1 text-base font-semibold tracking-tight">{title}</h1>
      {about && <span className="truncate text-sm text-muted">{about}</span>}
      {squad && !may && <Badge tone="info" title="You are a viewer of this squad. An administrator of the squad can make you a member."><Eye aria-hidden className="size-3" />You read along</Badge>}
      <div className="ml-auto flex flex-wrap items-center gap-2 max-sm:has-[select]:w-full">{children}</div>
    </header>
  )
}
