import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Activity, Bot, Box, ChartNoAxesColumn, ChevronsUpDown, Kanban, LogOut, Monitor, Moon, Search, Settings2, Sun } from 'lucide-react'
import type { ReactNode } from 'react'
import { useSyncExternalStore } from 'react'
import { leave } from '@/api/me'
import { squadsQuery } from '@/api/squads'
import type { User } from '@/api/types'
import { LiveBadge } from '@/live/LiveBadge'
import { Avatar } from '@/ui/Avatar'
import { Menu } from '@/ui/Menu'
import { openPalette } from './paletteState'
import { lastSquad } from './squadChoice'
import { readTheme, setTheme, subscribeTheme } from './theme'

const PAGES = [
  { to: '/squads/$squadId/board', label: 'Board', icon: Kanban },
  { to: '/squads/$squadId/agents', label: 'Agents', icon: Bot },
  { to: '/squads/$squadId/sandboxes', label: 'Sandboxes', icon: Box },
  { to: '/squads/$squadId/insights', label: 'Insights', icon: ChartNoAxesColumn },
  { to: '/squads/$squadId/settings', label: 'Squad', icon: Settings2 },
] as const

const ITEM = 'flex flex-1 flex-col items-center gap-0.5 rounded-md px-2 py-1.5 text-2xs font-medium text-muted transition-colors hover:bg-hover hover:text-ink data-[status=active]:text-accent sm:flex-none sm:flex-row sm:gap-2.5 sm:px-2 sm:text-sm sm:data-[status=active]:bg-hover sm:data-[status=active]:text-ink [&_svg]:size-[1.1rem] sm:[&_svg]:size-4'

export function Sidebar({ me }: { me: User }) {
  const squads = useQuery(squadsQuery)
  const params = useParams({ strict: false })
  const squadId = params.squadId ?? squads.data?.find((s) => s.id === lastSquad())?.id ?? squads.data?.[0]?.id
  return (
    <nav aria-label="Main" className="flex shrink-0 border-t bg-canvas pb-[env(safe-area-inset-bottom)] sm:w-56 sm:flex-col sm:border-t-0 sm:border-r sm:pb-0">
      <div className="hidden p-3 pb-1 sm:block">
        <SquadSwitch squadId={squadId} />
        <button type="button" onClick={openPalette} className="mt-2 flex h-8 w-full items-center gap-2 rounded-md border bg-surface px-2.5 text-sm text-faint shadow-card transition-colors hover:border-line-strong">
          <Search aria-hidden className="size-3.5" />
          <span className="flex-1 text-left">Search</span>
          <kbd className="rounded border px-1 font-sans text-2xs">Ctrl K</kbd>
        </button>
      </div>
      <div className="flex flex-1 gap-0.5 p-1.5 sm:flex-col sm:p-3 sm:pt-2">
        {squadId && PAGES.map(({ to, label, icon: Icon }) => (
          <Link key={to} to={to} params={{ squadId }} className={ITEM}><Icon aria-hidden />{label}</Link>
        ))}
        <Link to="/system" className={`${ITEM} max-sm:hidden`}><Activity aria-hidden />System</Link>
        <button type="button" onClick={openPalette} className={`${ITEM} sm:hidden`}><Search aria-hidden />Search</button>
      </div>
      <div className="hidden flex-col gap-2 p-3 sm:flex">
        <LiveBadge />
        <Account me={me} />
      </div>
      <div className="fixed top-2 left-1/2 z-30 -translate-x-1/2 sm:hidden"><LiveBadge /></div>
    </nav>
  )
}

function SquadSwitch({ squadId }: { squadId: string | undefined }) {
  const squads = useQuery(squadsQuery)
  const navigate = useNavigate()
  const open = squads.data?.find((squad) => squad.id === squadId)
  const items = (squads.data ?? []).map((squad) => ({ label: squad.name, onSelect: () => void navigate({ to: '/squads/$squadId/board', params: { squadId: squad.id } }) }))
  return (
    <Menu
      align="start"
      items={items}
      trigger={
        <button type="button" className="flex h-9 w-full items-center gap-2.5 rounded-md px-1.5 text-left hover:bg-hover">
          <img src="/icon.svg" alt="" className="size-6 rounded-md" />
          <span className="min-w-0 flex-1 truncate font-semibold tracking-tight">{open?.name ?? 'Agent Squad'}</span>
          <ChevronsUpDown aria-hidden className="size-3.5 text-faint" />
        </button>
      }
    />
  )
}

const THEMES: { value: 'system' | 'light' | 'dark'; label: string; icon: ReactNode }[] = [
  { value: 'system', label: 'Follow the system', icon: <Monitor aria-hidden /> },
  { value: 'light', label: 'Light', icon: <Sun aria-hidden /> },
  { value: 'dark', label: 'Dark', icon: <Moon aria-hidden /> },
]

function Account({ me }: { me: User }) {
  const theme = useSyncExternalStore(subscribeTheme, readTheme)
  return (
    <Menu
      align="start"
      items={[
        ...THEMES.map(({ value, label, icon }) => ({ label, icon, onSelect: () => setTheme(value), ...(value === theme && { hint: '✓' }) })),
        'line',
        { label: 'Sign out', icon: <LogOut aria-hidden />, onSelect: () => void leave() },
      ]}
      trigger={
        <button type="button" className="flex h-9 w-full items-center gap-2.5 rounded-md px-1.5 text-left text-sm hover:bg-hover">
          <Avatar id={me.id} name={me.name} size={24} hidden />
          <span className="min-w-0 flex-1 truncate">{me.name}</span>
        </button>
      }
    />
  )
}
