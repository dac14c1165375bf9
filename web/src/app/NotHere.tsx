import { Link, type LinkProps } from '@tanstack/react-router'
import { Compass } from 'lucide-react'
import type { ReactNode } from 'react'
import { Empty } from '@/ui/States'
import { useTitle } from './useTitle'

/** An address that leads nowhere, and the way on from there. */
export function NotHere({ title, children, way = { to: '/' }, to = 'To your board' }: { title: string; children: ReactNode; way?: LinkProps; to?: string }) {
  useTitle(title)
  const home = <Link {...way} className="inline-flex h-8 items-center rounded-md border bg-surface px-3 text-sm font-medium shadow-card hover:border-line-strong hover:bg-hover">{to}</Link>
  return <Empty icon={<Compass aria-hidden />} title={<h1>{title}</h1>} action={home}>{children}</Empty>
}
