import type { ReactNode } from 'react'

/** A part of the settings: what it is, what can be added, its rows. */
export function Section({ title, about, action, children }: { title: string; about: string; action?: ReactNode; children: ReactNode }) {
  return (
    <section className="mx-auto max-w-4xl p-4 sm:p-6">
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <div className="min-w-0 flex-1 max-sm:basis-full">
          <h2 className="text-base font-semibold">{title}</h2>
          <p className="text-sm text-pretty text-muted">{about}</p>
        </div>
        {action}
      </div>
      {children}
    </section>
  )
}

export function List({ children }: { children: ReactNode }) {
  return <ul className="divide-y rounded-lg border bg-surface shadow-card empty:hidden">{children}</ul>
}
