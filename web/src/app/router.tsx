import { createRootRoute, type ErrorComponentProps, createRoute, createRouter, lazyRouteComponent, Navigate, Outlet } from '@tanstack/react-router'
import { BoardPage } from '@/board/BoardPage'
import { ErrorState } from '@/ui/States'
import { Frame } from './Frame'
import { Home } from './Home'
import { NotHere } from './NotHere'
import { Shortcut } from './Shortcut'
import { SquadLayout } from './SquadLayout'

interface SignInSearch { to?: string; expired?: boolean }

/** Only paths of this page are gone back to. */
function signInSearch(search: Record<string, unknown>): SignInSearch {
  const to = typeof search.to === 'string' && /^\/(?![/\\])/.test(search.to) ? search.to : undefined
  return { ...(to && { to }), ...(search.expired === true && { expired: true }) }
}

const root = createRootRoute({ component: Outlet })

const signin = createRoute({ getParentRoute: () => root, path: '/sign-in', component: lazyRouteComponent(() => import('@/signin/SignInPage'), 'SignInPage'), validateSearch: signInSearch })
const frame = createRoute({ getParentRoute: () => root, id: 'frame', component: Frame })
const home = createRoute({ getParentRoute: () => frame, path: '/', component: Home })
const system = createRoute({ getParentRoute: () => frame, path: '/system', component: lazyRouteComponent(() => import('@/system/SystemPage'), 'SystemPage') })
const toTask = createRoute({ getParentRoute: () => frame, path: '/tasks/$ref', component: () => <Shortcut noun="tasks" /> })
const toPull = createRoute({ getParentRoute: () => frame, path: '/pulls/$ref', component: () => <Shortcut noun="pulls" /> })

const squadRoute = createRoute({ getParentRoute: () => frame, path: '/squads/$squadId', component: SquadLayout })
const squadIndex = createRoute({ getParentRoute: () => squadRoute, path: '/', component: ToBoard })

function ToBoard() {
  const { squadId } = squadRoute.useParams()
  return <Navigate to="/squads/$squadId/board" params={{ squadId }} replace />
}

interface BoardSearch { member?: string; repository?: string; label?: string; text?: string }
const text = (value: unknown) => (typeof value === 'string' && value ? value : undefined)

function tabSearch(search: Record<string, unknown>): { tab?: string } {
  const tab = text(search.tab)
  return tab ? { tab } : {}
}

const boardRoute = createRoute({
  getParentRoute: () => squadRoute,
  path: '/board',
  component: BoardPage,
  validateSearch: (search: Record<string, unknown>): BoardSearch => {
    const out: BoardSearch = {}
    for (const key of ['member', 'repository', 'label', 'text'] as const) {
      const value = text(search[key])
      if (value) out[key] = value
    }
    return out
  },
})

const taskRoute = createRoute({
  getParentRoute: () => squadRoute,
  path: '/tasks/$number',
  component: lazyRouteComponent(() => import('@/task/TaskPage'), 'TaskPage'),
  validateSearch: tabSearch,
})

const agents = createRoute({ getParentRoute: () => squadRoute, path: '/agents', component: lazyRouteComponent(() => import('@/work/AgentsPage'), 'AgentsPage') })

const workRoute = createRoute({
  getParentRoute: () => squadRoute,
  path: '/agents/$memberId',
  component: lazyRouteComponent(() => import('@/work/WorkPage'), 'WorkPage'),
  validateSearch: (search: Record<string, unknown>): { tab?: string; execution?: string } => {
    const out: { tab?: string; execution?: string } = {}
    const tab = text(search.tab)
    const execution = text(search.execution)
    if (tab) out.tab = tab
    if (execution) out.execution = execution
    return out
  },
})

const sandboxes = createRoute({ getParentRoute: () => squadRoute, path: '/sandboxes', component: lazyRouteComponent(() => import('@/sandboxes/SandboxesPage'), 'SandboxesPage') })
const insights = createRoute({ getParentRoute: () => squadRoute, path: '/insights', component: lazyRouteComponent(() => import('@/insights/InsightsPage'), 'InsightsPage') })
const settings = createRoute({ getParentRoute: () => squadRoute, path: '/settings', component: lazyRouteComponent(() => import('@/squad/SquadPage'), 'SquadPage'), validateSearch: tabSearch })

const tree = root.addChildren([
  signin,
  frame.addChildren([home, system, toTask, toPull, squadRoute.addChildren([squadIndex, boardRoute, taskRoute, agents, workRoute, sandboxes, insights, settings])]),
])

export const router = createRouter({ routeTree: tree, defaultPreload: 'intent', scrollRestoration: false, defaultErrorComponent: Broken, defaultNotFoundComponent: Nowhere })

function Nowhere() {
  return <NotHere title="There is nothing here">The address may be wrong, or it is not yours to see.</NotHere>
}

function Broken({ error, reset }: ErrorComponentProps) {
  return <ErrorState error={error} what="This page" retry={reset} />
}

declare module '@tanstack/react-router' {
  interface Register { router: typeof router }
}
