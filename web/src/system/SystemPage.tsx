import { useQuery } from '@tanstack/react-query'
import { RefreshCw, Stethoscope } from 'lucide-react'
import type { ReactNode } from 'react'
import { doctorQuery, streamsQuery, versionQuery } from '@/api/system'
import { Header } from '@/app/Header'
import { useAdministers } from '@/app/may'
import { useLive } from '@/live/live'
import { Button } from '@/ui/Button'
import { Checks } from '@/ui/Checks'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Audit } from './Audit'
import { Tokens } from './Tokens'

export function SystemPage() {
  const administers = useAdministers()
  const doctor = useQuery({ ...doctorQuery, enabled: administers })
  return (
    <>
      <Header title="System">{administers && <Button onClick={() => void doctor.refetch()} busy={doctor.isFetching}><RefreshCw aria-hidden className="size-4" />Examine again</Button>}</Header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto grid max-w-6xl grid-cols-[minmax(0,1fr)] gap-5 p-4 sm:p-6 lg:grid-cols-[minmax(0,1fr)_20rem]">
          <Card title="Doctor">
            {!administers && <Empty icon={<Stethoscope aria-hidden />} title="For administrators of the installation">They see the doctor’s report and the audit log here.</Empty>}
            {administers && doctor.isPending && <Rows what="the doctor’s report" />}
            {doctor.isError && !doctor.data && <ErrorState error={doctor.error} what="The report" retry={() => void doctor.refetch()} />}
            {doctor.data && <Checks checks={doctor.data} />}
          </Card>
          <div className="space-y-5"><Versions /><Streams /></div>
          <div className="space-y-5 lg:col-span-2"><Tokens />{administers && <Audit />}</div>
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

const STREAMS: Record<string, string> = { subscribers: 'readers now', last_seq: 'newest event', buffered: 'kept in memory', appended: 'events since the start', delivered: 'events handed out', catch_ups: 'readers caught up' }

function Streams() {
  const stats = useQuery(streamsQuery)
  const live = useLive()
  const pairs = Object.entries(stats.data ?? {}).filter(([, value]) => typeof value === 'number').map(([key, value]): [string, string] => [STREAMS[key] ?? key.replaceAll('_', ' '), new Intl.NumberFormat(navigator.language).format(Number(value))])
  return <Card title="Connections"><Pairs pairs={[['this page', live], ...pairs]} /></Card>
}

export function Card({ title, children }: { title: string; children: ReactNode }) {
  return <section aria-label={title} className="rounded-lg border bg-surface p-4 shadow-card"><h2 className="mb-3 text-sm font-semibold">{title}</h2>{children}</section>
}

function Pairs({ pairs }: { pairs: [string, string][] }) {
  return <dl className="space-y-1.5 text-sm">{pairs.filter(([, value]) => value).map(([name, value]) => <div key={name} className="flex justify-between gap-4"><dt className="text-muted">{name}</dt><dd className="tabular truncate">{value}</dd></div>)}</dl>
}
