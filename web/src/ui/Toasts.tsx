import { CircleAlert, CircleCheck, Info, X } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { toasts } from './toast'

const ICONS = { ok: CircleCheck, danger: CircleAlert, info: Info }
const INKS = { ok: 'text-ok', danger: 'text-danger', info: 'text-info' }

export function Toasts() {
  const notes = useSyncExternalStore(toasts.subscribe, toasts.all)
  return (
    <section aria-label="Notices" aria-live="polite" className="pointer-events-none fixed right-3 bottom-20 left-3 z-[60] flex flex-col items-end gap-2 sm:bottom-4 sm:left-auto sm:w-88">
      {notes.map((note) => {
        const Icon = ICONS[note.tone]
        return (
          <div key={note.id} className="pointer-events-auto flex w-full animate-rise items-start gap-2.5 rounded-lg border bg-raised p-3 text-sm shadow-lift">
            <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${INKS[note.tone]}`} />
            <div className="min-w-0 flex-1">
              <p className="font-medium break-words">{note.text}</p>
              {note.detail && <p className="mt-0.5 break-words text-muted">{note.detail}</p>}
            </div>
            <button type="button" aria-label="Dismiss" className="rounded p-0.5 text-faint hover:text-ink" onClick={() => toasts.dismiss(note.id)}><X aria-hidden className="size-3.5" /></button>
          </div>
        )
      })}
    </section>
  )
}
