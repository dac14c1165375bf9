import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { resolved, subscribeTheme } from '@/app/theme'

const DARK = { background: '#0d0e12', foreground: '#d7dae0', cursor: '#6fd3b4', selectionBackground: '#2d4a44', black: '#1b1e24', red: '#f07178', green: '#86d993', yellow: '#e5c07b', blue: '#7fb4f5', magenta: '#c4a1f0', cyan: '#6fd3d3', white: '#d7dae0', brightBlack: '#8a919e' }
const LIGHT = { background: '#f9fafb', foreground: '#24292f', cursor: '#1f6f5c', selectionBackground: '#cbe8df', black: '#24292f', red: '#b3261e', green: '#1a7f4b', yellow: '#8a5a00', blue: '#2557a7', magenta: '#7b3fa0', cyan: '#0e7075', white: '#57606a', brightBlack: '#6e7781', brightWhite: '#24292f' }

const colours = () => (resolved() === 'dark' ? DARK : LIGHT)

export interface Screen { terminal: Terminal; search: SearchAddon; close: () => void }

/** A terminal in the given element, in the page's colours, as large as its place. */
export function openScreen(node: HTMLElement, options: { input: boolean }): Screen {
  const terminal = new Terminal({
    convertEol: !options.input,
    disableStdin: !options.input,
    cursorBlink: options.input,
    cursorInactiveStyle: options.input ? 'outline' : 'none',
    scrollback: 50_000,
    fontSize: 12.5,
    lineHeight: 1.25,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--font-mono') || 'monospace',
    theme: colours(),
    screenReaderMode: true,
    allowProposedApi: true,
  })
  const fit = new FitAddon()
  const search = new SearchAddon()
  terminal.loadAddon(fit)
  terminal.loadAddon(search)
  terminal.open(node)
  const resize = new ResizeObserver(() => node.clientWidth > 0 && fit.fit())
  resize.observe(node)
  const unsubscribe = subscribeTheme(() => { terminal.options.theme = colours() })
  return {
    terminal,
    search,
    close: () => {
      resize.disconnect()
      unsubscribe()
      terminal.dispose()
    },
  }
}
