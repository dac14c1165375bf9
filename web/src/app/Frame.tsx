import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useRouter } from '@tanstack/react-router'
import { Problem } from '@/api/client'
import { meQuery } from '@/api/me'
import { LiveProvider } from '@/live/LiveProvider'
import { Spinner } from '@/ui/Spinner'
import { ErrorState } from '@/ui/States'
import { Once } from './Once'
import { Palette } from './Palette'
import { Sidebar } from './Sidebar'

/** The house of every page behind the door. Nothing is asked before we know who asks. */
export function Frame() {
  const me = useQuery(meQuery)
  const signedOut = me.data === null || (me.error instanceof Problem && me.error.isSignedOut)
  if (signedOut) return <ToSignIn />
  if (me.isPending) return <div className="flex h-full items-center justify-center"><Spinner label="Opening…" /></div>
  if (me.isError) return <ErrorState error={me.error} what="Your account" retry={() => void me.refetch()} />
  return (
    <LiveProvider user={me.data.id}>
      <a href="#main" className="sr-only z-50 rounded-md bg-accent px-3 py-2 text-accent-ink focus:not-sr-only focus:absolute focus:top-2 focus:left-2">Skip to the content</a>
      <div className="flex h-full flex-col-reverse sm:flex-row">
        <Sidebar me={me.data} />
        <main id="main" className="flex min-h-0 min-w-0 flex-1 flex-col">
          <Outlet />
        </main>
      </div>
      <Palette />
    </LiveProvider>
  )
}

function ToSignIn() {
  const navigate = useNavigate()
  const { pathname, search } = useRouter().latestLocation
  const back = pathname === '/' ? {} : { to: pathname }
  return <Once go={() => void navigate({ to: '/sign-in', search: 'signin' in search ? { expired: true } : back, replace: true })} />
}
