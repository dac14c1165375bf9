// A few words at the edge of the page, kept outside React so that any mutation
// can speak.
export interface Note { id: number; tone: 'ok' | 'danger' | 'info'; text: string; detail?: string }

let notes: Note[] = []
let nextID = 1
const listeners = new Set<() => void>()

function set(next: Note[]) {
  notes = next
  for (const listener of listeners) listener()
}

export const toasts = {
  all: () => notes,
  subscribe: (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
  dismiss: (id: number) => set(notes.filter((note) => note.id !== id)),
}

export function say(text: string, tone: Note['tone'] = 'ok', detail?: string) {
  const note: Note = { id: nextID++, tone, text, ...(detail && { detail }) }
  set([...notes.slice(-2), note])
  setTimeout(() => toasts.dismiss(note.id), tone === 'danger' ? 9000 : 4500)
}
