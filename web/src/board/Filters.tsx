import { Search, SlidersHorizontal, X } from 'lucide-react'
import { Popover } from 'radix-ui'
import type { Member, Repository } from '@/api/types'
import { Button } from '@/ui/Button'
import { Field, Select } from '@/ui/Field'
import type { Filter } from './order'

interface Props { filter: Filter; members: Member[]; repositories: Repository[]; labels: string[]; onChange: (filter: Filter) => void }

export function Filters({ filter, members, repositories, labels, onChange }: Props) {
  const set = (key: keyof Filter, value: string) => {
    const next = { ...filter }
    if (value) next[key] = value
    else delete next[key]
    onChange(next)
  }
  const used = (['member', 'repository', 'label'] as const).filter((key) => filter[key]).length
  return (
    <>
      <div className="relative">
        <Search aria-hidden className="pointer-events-none absolute top-2 left-2.5 size-4 text-faint" />
        <input
          type="search" aria-label="Filter tasks by text" placeholder="Filter…" value={filter.text ?? ''} onChange={(event) => set('text', event.target.value)}
          className="h-8 w-32 rounded-md border bg-surface pr-2 pl-8 text-sm shadow-card focus:border-accent focus:ring-2 focus:ring-accent/25 focus:outline-none sm:w-44"
        />
      </div>
      <Popover.Root>
        <Popover.Trigger asChild>
          <Button aria-label={used ? `Filters, ${used} set` : 'Filters'}>
            <SlidersHorizontal aria-hidden className="size-4" />
            <span className="max-sm:hidden">Filters</span>
            {used > 0 && <span className="tabular rounded-full bg-accent px-1.5 text-2xs text-accent-ink">{used}</span>}
          </Button>
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Content align="end" sideOffset={6} className="z-50 w-64 animate-rise space-y-3 rounded-lg border bg-raised p-4 shadow-lift">
            <Field label="Member">{(id) => <Choice id={id} value={filter.member} any="Anyone" options={members.map((m) => [m.id, m.name])} onChange={(v) => set('member', v)} />}</Field>
            <Field label="Repository">{(id) => <Choice id={id} value={filter.repository} any="Any repository" options={repositories.map((r) => [r.id, r.name])} onChange={(v) => set('repository', v)} />}</Field>
            <Field label="Label">{(id) => <Choice id={id} value={filter.label} any="Any label" options={labels.map((l) => [l, l])} onChange={(v) => set('label', v)} />}</Field>
            {used > 0 && <Button look="quiet" size="sm" onClick={() => onChange(filter.text ? { text: filter.text } : {})}><X aria-hidden className="size-3.5" />Clear</Button>}
          </Popover.Content>
        </Popover.Portal>
      </Popover.Root>
    </>
  )
}

function Choice({ id, value, any, options, onChange }: { id: string; value: string | undefined; any: string; options: [string, string][]; onChange: (value: string) => void }) {
  return (
    <Select id={id} value={value ?? ''} onChange={(event) => onChange(event.target.value)}>
      <option value="">{any}</option>
      {options.map(([key, name]) => <option key={key} value={key}>{name}</option>)}
    </Select>
  )
}
