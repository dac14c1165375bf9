// Light, dark or the system's choice, kept in this browser.
export type Theme = 'system' | 'light' | 'dark'

const KEY = 'squad.theme'
const dark = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

export function readTheme(): Theme {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system'
  }
}

export function resolved(): 'light' | 'dark' {
  const theme = readTheme()
  return theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme
}

function apply() {
  document.documentElement.dataset.theme = resolved()
  for (const listener of listeners) listener()
}

export function setTheme(theme: Theme) {
  try {
    if (theme === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, theme)
  } catch {
    // storage is off: the choice lasts as long as the page
  }
  apply()
}

export function subscribeTheme(listener: () => void) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

dark.addEventListener('change', apply)
