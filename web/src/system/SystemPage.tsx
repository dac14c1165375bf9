import { useQuery } from '@tanstack/react-query'
import { CircleCheck, CircleMinus, CircleX, RefreshCw, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { doctorQuery, streamsQuery, versionQuery } from '@/api/system'
import type { Check } from '@/api/types'
import { Header } from '@/app/Header'
import { useLive } from '@/live/live'
import { Button } from '@/ui/Button'
import { ErrorState, Rows } from '@/ui/States'
import { Audit } from './Audit'
import { Tokens } from './Tokens'

const MARKS: Record<Check['status'], ReactNode> = {
  ok: <CircleCheck aria-label="ok" className="size-4 text-ok" />,
  warning: <TriangleAlert aria-label="warning" className="size-4 text-warn" />,
  failed: <CircleX aria-label="failed" className="size-4 text-danger" />,
  skipped: <CircleMinus aria-label="skipped" className="size-4 text-faint" />,
}

export function SystemPage() {
  const doctor = useQuery(doctorQuery)
  return (
    <>
      <Header title="System"><Button onClick={() => void doctor.refetch()} busy={doctor.isFetching}><RefreshCw aria-hidden className="size-4" />Examine again</Button></Header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto grid max-w-6xl grid-cols-[minmax(0,1fr)] gap-5 p-4 sm:p-6 lg:grid-cols-[minmax(0,1fr)_20rem]">
          <Card title="Doctor">
            {doctor.isPending && <Rows what="the doctor’s report" />}
            {doctor.isError && !doctor.data && <ErrorState error={doctor.error} what="The report" retry={() => void doctor.refetch()} />}
            <ul className="divide-y">
              {doctor.data?.map((check) => (
                <li key={check.name} className="flex gap-3 py-2.5 text-sm first:pt-0 last:pb-0">
                  <span className="mt-0.5">{MARKS[check.status]}</span>
                  <div className="min-w-0 flex-1">
                    <p><b className="font-medium">{check.name}</b> <span className="break-words text-muted">{check.detail}</span></p>
                    {check.remedy && <p className="mt-0.5 text-xs break-words text-warn">{check.remedy}</p>}
                  </div>
                </li>
              ))}
            </ul>
          </Card>
          <div className="space-y-5"><Versions /><Streams /></div>
          <div className="space-y-5 lg:col-span-2"><Tokens /><Audit /></div>
        </div>
      </div>
    </>
  )
}

function Versions() {
  const version = useQuery(versionQuery)
  if (!version.data) return null
  const { version: own, go, commit, database, schema } = version.data
  return <Card title="Versions"><Pairs pairs={[['Agent Squad', own], ['Go', go ?? ''], ['Commit', commit?.slice(0, 10) ?? ''], ['Database', database ? `${database}, schema ${schema}` : '']]} /></Card>
}

function Streams() {
  const stats = useQuery(streamsQuery)
  const live = useLive()
  const pairs = Object.entries(stats.data ?? {}).filter(([, value]) => typeof value === 'number').map(([key, value]): [string, string] => [key.replaceAll('_', ' '), new Intl.NumberFormat(navigator.language).format(Number(value))])
  return <Card title="Connections"><Pairs pairs={[['this page', live], ...pairs]} /></Card>
}

export function Card({ title, children }: { title: string; children: ReactNode }) {
  return <section aria-label={title} className="rounded-lg border bg-surface p-4 shadow-card"><h2 className="mb-3 text-sm font-semibold">{title}</h2>{children}</section>
}

function Pairs({ pairs }: { pairs: [string, string][] }) {
  return <dl className="space-y-1.5 text-sm">{pairs.filter(([, value]) => value).map(([name, value]) => <div key={name} className="flex justify-between gap-4"><dt className="text-muted">{name}</dt><dd className="tabular truncate">{value}</dd></div>)}</dl>
}
