import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { CornerDownLeft, Search } from 'lucide-react'
import { Dialog } from 'radix-ui'
import { type KeyboardEvent, useEffect, useId, useState, useSyncExternalStore } from 'react'
import { leave } from '@/api/me'
import { membersQuery, squadsQuery } from '@/api/squads'
import { tasksQuery } from '@/api/tasks'
import { cx } from '@/ui/cx'
import { type Command, rank } from './commands'
import { paletteState, setPalette } from './paletteState'
import { setTheme } from './theme'

/** Ctrl-K: go anywhere, find any task, by keyboard alone. */
export function Palette() {
  const open = useSyncExternalStore(paletteState.subscribe, paletteState.get)
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault()
        setPalette(!paletteState.get())
      }
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
  return (
    <Dialog.Root open={open} onOpenChange={setPalette}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 animate-fade bg-scrim" />
        <Dialog.Content aria-describedby={undefined} className="fixed inset-x-3 top-[9vh] z-50 mx-auto flex max-h-[70vh] max-w-xl animate-rise flex-col overflow-hidden rounded-xl border bg-raised shadow-lift focus:outline-none">
          <Dialog.Title className="sr-only">Search and commands</Dialog.Title>
          <Finder />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function useCommands(): Command[] {
  const navigate = useNavigate()
  const { squadId } = useParams({ strict: false })
  const squads = useQuery(squadsQuery)
  const tasks = useQuery({ ...tasksQuery(squadId ?? ''), enabled: Boolean(squadId) })
  const members = useQuery({ ...membersQuery(squadId ?? ''), enabled: Boolean(squadId) })
  const commands: Command[] = []
  if (squadId) {
    const params = { squadId }
    commands.push(
      { group: 'Go to', name: 'Board', run: () => void navigate({ to: '/squads/$squadId/board', params }) },
      { group: 'Go to', name: 'Agents', run: () => void navigate({ to: '/squads/$squadId/agents', params }) },
      { group: 'Go to', name: 'Sandboxes', run: () => void navigate({ to: '/squads/$squadId/sandboxes', params }) },
      { group: 'Go to', name: 'Insights', run: () => void navigate({ to: '/squads/$squadId/insights', params }) },
      { group: 'Go to', name: 'Squad settings', run: () => void navigate({ to: '/squads/$squadId/settings', params }) },
    )
  }
  commands.push({ group: 'Go to', name: 'System', run: () => void navigate({ to: '/system' }) })
  for (const squad of squads.data ?? []) {
    if (squad.id !== squadId) commands.push({ group: 'Squads', name: squad.name, run: () => void navigate({ to: '/squads/$squadId/board', params: { squadId: squad.id } }) })
  }
  commands.push(
    { group: 'Look', name: 'Dark theme', run: () => setTheme('dark') },
    { group: 'Look', name: 'Light theme', run: () => setTheme('light') },
    { group: 'Look', name: 'Follow the system theme', run: () => setTheme('system') },
    { group: 'Account', name: 'Sign out', run: () => void leave() },
  )
  for (const member of members.data ?? []) {
    commands.push({ group: 'Agents', name: member.name, hint: member.role, run: () => void navigate({ to: '/squads/$squadId/agents/$memberId', params: { squadId: member.squad_id, memberId: member.id } }) })
  }
  for (const task of tasks.data ?? []) {
    commands.push({ group: 'Tasks', name: `#${task.number} ${task.title}`, hint: task.status.replace('_', ' '), run: () => void navigate({ to: '/squads/$squadId/tasks/$number', params: { squadId: task.squad_id, number: String(task.number) } }) })
  }
  return commands
}

function Finder() {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const found = rank(useCommands(), text, 40)
  const choose = (command: Command | undefined) => {
    if (!command) return
    setPalette(false)
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      const step = event.key === 'ArrowDown' ? 1 : -1
      setAt((found.length + at + step) % Math.max(1, found.length))
    }
    if (event.key === 'Enter') choose(found[at])
  }
  return (
    <>
      <div className="flex items-center gap-3 border-b px-4">
        <Search aria-hidden className="size-4 text-faint" />
        <input
          role="combobox" aria-label="Search tasks, agents and pages" aria-expanded="true" aria-controls={list} aria-activedescendant={found[at] ? `${list}-${at}` : undefined}
          className="h-12 flex-1 bg-transparent text-base outline-none" placeholder="Search tasks, agents, pages…" value={text}
          onChange={(event) => { setText(event.target.value); setAt(0) }} onKeyDown={onKeyDown}
        />
      </div>
      <div id={list} role="listbox" aria-label="Results" className="overflow-y-auto p-1.5">
        {found.length === 0 && <p className="p-6 text-center text-sm text-muted">Nothing is called that.</p>}
        {found.map((command, i) => (
          <div
            key={`${command.group}/${command.name}`} id={`${list}-${i}`} role="option" aria-selected={i === at} tabIndex={-1}
            ref={i === at ? (node) => node?.scrollIntoView({ block: 'nearest' }) : undefined}
            onMouseMove={() => setAt(i)} onClick={() => choose(command)} onKeyDown={onKeyDown}
            className={cx('flex cursor-default items-center gap-3 rounded-md px-2.5 py-2 text-sm', i === at && 'bg-hover')}
          >
            <span className="w-14 shrink-0 text-2xs text-faint">{command.group}</span>
            <span className="min-w-0 flex-1 truncate">{command.name}</span>
            {command.hint && <span className="text-xs text-faint">{command.hint}</span>}
            {i === at && <CornerDownLeft aria-hidden className="size-3.5 text-faint" />}
          </div>
        ))}
      </div>
    </>
  )
}
