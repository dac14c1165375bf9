let open = false
const listeners = new Set<() => void>()

export const paletteState = {
  get: () => open,
  subscribe: (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

export function setPalette(next: boolean) {
  open = next
  for (const listener of listeners) listener()
}

export const openPalette = () => setPalette(true)
