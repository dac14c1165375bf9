import { useQuery } from '@tanstack/react-query'
import { Boxes } from 'lucide-react'
import { templatesQuery } from '@/api/system'
import { bytes } from '@/format/number'
import { Badge } from '@/ui/Badge'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { List, Section } from './Section'

export function Templates() {
  const templates = useQuery(templatesQuery)
  return (
    <Section title="Templates" about="What a sandbox begins with. “base” is always there and needs no download; others come from OCI images or E2B builds.">
      {templates.isPending && <Rows what="the templates" />}
      {templates.isError && <ErrorState error={templates.error} what="The templates" retry={() => void templates.refetch()} />}
      {templates.data?.length === 0 && <Empty icon={<Boxes aria-hidden />} title="Only base">Import an image with <code className="font-mono">squad template import</code>.</Empty>}
      <List>
        {templates.data?.map((each) => (
          <li key={each.id} className="flex items-center gap-3 p-3 sm:px-4">
            <Boxes aria-hidden className="size-5 shrink-0 text-faint" />
            <div className="min-w-0 flex-1">
              <p className="flex flex-wrap items-center gap-2 text-sm font-medium">{each.name}<Badge tone={each.status === 'ready' ? 'ok' : each.status === 'error' ? 'danger' : 'warn'}>{each.status}</Badge></p>
              <p className="truncate text-xs text-muted">{each.provider} · {each.source} · {each.cpu} CPU · {each.memory_mb} MB · {bytes(each.size_bytes)}</p>
              {each.error && <p className="text-xs text-danger">{each.error}</p>}
            </div>
            <span className="text-xs text-faint"><Time at={each.created_at} /></span>
          </li>
        ))}
      </List>
    </Section>
  )
}
