import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Boxes, Plus, RotateCw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { keys } from '@/api/keys'
import { deleteTemplate, templatesQuery } from '@/api/system'
import type { Template } from '@/api/types'
import { useAdministers } from '@/app/may'
import { bytes } from '@/format/number'
import { Badge, type Tone } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Spinner } from '@/ui/Spinner'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { List, Section } from './Section'
import { TemplateDialog } from './TemplateDialog'

const TONES: Record<Template['status'], Tone> = { building: 'warn', ready: 'ok', error: 'danger' }

export function Templates() {
  const templates = useQuery(templatesQuery)
  const cache = useQueryClient()
  const confirm = useConfirm()
  const may = useAdministers()
  const [building, setBuilding] = useState<{ name: string }>()
  const remove = useMutation({ mutationFn: (each: Template) => deleteTemplate(each.id), meta: { failed: 'The template was not deleted' }, onSuccess: () => cache.invalidateQueries({ queryKey: keys.templates }) })
  const ask = async (each: Template) => {
    if (await confirm({ title: `Delete ${each.name}?`, lost: 'Its image is removed; new sandboxes cannot start from it. Those that run go on.', verb: 'Delete' })) remove.mutate(each)
  }
  return (
    <Section title="Templates" about="What a sandbox begins with. “base” is always there and needs no download; others are built from it or from an OCI image." action={may && <Button look="primary" onClick={() => setBuilding({ name: '' })}><Plus aria-hidden className="size-4" />Build a template</Button>}>
      {templates.isPending && <Rows what="the templates" />}
      {templates.isError && !templates.data && <ErrorState error={templates.error} what="The templates" retry={() => void templates.refetch()} />}
      {templates.data?.length === 0 && <Empty icon={<Boxes aria-hidden />} title="No sandboxes run on this machine">Templates of E2B are made with its own tools; name one under “Budget and policy”.</Empty>}
      <List>
        {templates.data?.map((each) => (
          <li key={each.id} className="flex items-center gap-3 p-3 sm:px-4">
            <Boxes aria-hidden className="size-5 shrink-0 text-faint" />
            <div className="min-w-0 flex-1">
              <p className="flex flex-wrap items-center gap-2 text-sm font-medium">{each.name}<Badge tone={TONES[each.status]}>{each.status === 'building' && <Spinner />}{each.status}</Badge></p>
              <p className="truncate text-xs text-muted">{[each.provider, each.source === 'host' ? 'this machine’s own system' : '', `${each.cpu} CPU`, bytes(each.memory_mb * 1024 * 1024)].filter(Boolean).join(' · ')}</p>
              {each.status === 'building' && each.detail && <p className="truncate font-mono text-xs text-muted" role="status">{each.detail}</p>}
              {each.error && <p className="text-xs break-words text-danger">{each.error}</p>}
            </div>
            {may && each.source !== 'host' && (
              <>
                <span className="text-xs text-faint max-sm:hidden"><Time at={each.updated_at} /></span>
                <Button look="quiet" size="icon" aria-label={`Build ${each.name} again`} disabled={each.status === 'building'} onClick={() => setBuilding({ name: each.name })}><RotateCw aria-hidden className="size-4" /></Button>
                <Button look="quiet" size="icon" aria-label={`Delete ${each.name}`} onClick={() => void ask(each)}><Trash2 aria-hidden className="size-4" /></Button>
              </>
            )}
          </li>
        ))}
      </List>
      {building && <TemplateDialog name={building.name} templates={templates.data ?? []} onClose={() => setBuilding(undefined)} />}
    </Section>
  )
}
