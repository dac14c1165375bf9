import { CircleAlert, CloudOff, PlugZap } from 'lucide-react'
import type { ReactNode } from 'react'
import { Problem, wordsOf } from '@/api/client'
import { Button } from './Button'
import { cx } from './cx'

export function Empty({ icon, title, children, action }: { icon?: ReactNode; title: ReactNode; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex h-full min-h-48 flex-col items-center justify-center gap-1 p-8 text-center">
      {icon && <div className="mb-2 text-faint [&_svg]:size-7 [&_svg]:stroke-[1.5]">{icon}</div>}
      <div className="font-medium">{title}</div>
      {children && <div className="max-w-sm text-sm text-pretty text-muted">{children}</div>}
      {action && <div className="mt-4">{action}</div>}
    </div>
  )
}

export function ErrorState({ error, retry, what }: { error: unknown; retry?: () => void; what: string }) {
  const notYet = error instanceof Problem && error.isNotThereYet
  const offline = error instanceof Problem && error.status === 0
  const icon = notYet ? <PlugZap aria-hidden /> : offline ? <CloudOff aria-hidden /> : <CircleAlert aria-hidden />
  const title = notYet ? `${what}: this part of the server is not there` : `${what} could not be loaded`
  return (
    <div role="alert" className="h-full">
      <Empty icon={icon} title={title} action={retry && <Button onClick={retry}>Try again</Button>}>{wordsOf(error)}</Empty>
    </div>
  )
}

export function Skeleton({ className }: { className?: string }) {
  return <div aria-hidden className={cx('animate-pulse rounded-md bg-line/70', className)} />
}

export function Rows({ n = 6, what }: { n?: number; what: string }) {
  return (
    <div role="status" aria-label={`Loading ${what}`} className="space-y-2 p-4">
      {Array.from({ length: n }, (_, i) => <Skeleton key={i} className="h-10" />)}
    </div>
  )
}
