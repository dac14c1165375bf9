import type { ReactNode } from 'react'

/** The line at the top of a page: what it is, and what can be done on it. */
export function Header({ title, name, about, children }: { title: ReactNode; name?: string; about?: ReactNode; children?: ReactNode }) {
  const words = name ?? (typeof title === 'string' ? title : '')
  return (
    <header className="flex min-h-13 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-b px-4 py-2 sm:px-5">
      <title>{words ? `${words} · Agent Squad` : 'Agent Squad'}</title>
      <h1 className="min-w-0 truncate text-base font-semibold tracking-tight">{title}</h1>
      {about && <span className="truncate text-sm text-muted">{about}</span>}
      <div className="ml-auto flex flex-wrap items-center gap-2">{children}</div>
    </header>
  )
}
