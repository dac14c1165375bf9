import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Ellipsis, FolderGit2, Pencil, Plus, Stethoscope, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { keys } from '@/api/keys'
import { deleteRepository, repositoriesQuery } from '@/api/squads'
import type { Repository } from '@/api/types'
import { useMay } from '@/app/may'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { useConfirm } from '@/ui/confirm'
import { Menu } from '@/ui/Menu'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { RepositoryChecks } from './RepositoryChecks'
import { RepositoryDialog } from './RepositoryDialog'
import { List, Section } from './Section'

export function Repositories({ squad }: { squad: string }) {
  const repositories = useQuery(repositoriesQuery(squad))
  const cache = useQueryClient()
  const confirm = useConfirm()
  const may = useMay(squad, 'admin')
  const mayCheck = useMay(squad, 'member')
  const [editing, setEditing] = useState<Repository | 'new'>()
  const [checking, setChecking] = useState<string>()
  const remove = useMutation({ mutationFn: (each: Repository) => deleteRepository(each.id), meta: { failed: 'The repository was not removed' }, onSuccess: () => cache.invalidateQueries({ queryKey: keys.repositories(squad) }) })
  const ask = async (each: Repository) => {
    const lost = each.forge === 'local' ? 'This is the local forge: the repository itself, with all its branches and pull requests, is deleted.' : 'The squad forgets it, with its pull requests here. On its forge nothing changes.'
    if (await confirm({ title: `Remove ${each.name}?`, lost, verb: 'Remove' })) remove.mutate(each)
  }
  return (
    <Section title="Repositories" about="Code that the squad works on. The local forge needs no account anywhere." action={may && <Button look="primary" onClick={() => setEditing('new')}><Plus aria-hidden className="size-4" />Add a repository</Button>}>
      {repositories.isPending && <Rows what="the repositories" />}
      {repositories.isError && !repositories.data && <ErrorState error={repositories.error} what="The repositories" retry={() => void repositories.refetch()} />}
      {repositories.data?.length === 0 && <Empty icon={<FolderGit2 aria-hidden />} title="No repositories yet">{may ? 'Add one, so that tasks have something to change.' : 'An administrator of the squad can add one.'}</Empty>}
      <List>
        {repositories.data?.map((each) => (
          <li key={each.id} className="p-3 sm:px-4">
            <div className="flex items-center gap-3">
              <FolderGit2 aria-hidden className="size-5 shrink-0 text-faint" />
              <div className="min-w-0 flex-1">
                <p className="flex flex-wrap items-center gap-2 text-sm font-medium">{each.name}<Badge tone={each.forge === 'local' ? 'accent' : 'neutral'}>{each.forge}</Badge><Badge>{each.default_branch}</Badge></p>
                <p className="truncate text-xs text-muted"><span className="font-mono">{each.url}</span>{each.policy?.check_command && <> · checks with <span className="font-mono">{each.policy.check_command}</span></>}</p>
              </div>
              {mayCheck && <Button size="sm" aria-label={`Check ${each.name}`} aria-expanded={checking === each.id} onClick={() => setChecking(checking === each.id ? undefined : each.id)}><Stethoscope aria-hidden className="size-3.5" />Check</Button>}
              {may && (
                <Menu
                  trigger={<Button look="quiet" size="icon" aria-label={`What to do with ${each.name}`}><Ellipsis aria-hidden className="size-4" /></Button>}
                  items={[
                    { label: 'Edit', icon: <Pencil aria-hidden />, onSelect: () => setEditing(each) },
                    'line',
                    { label: 'Remove…', icon: <Trash2 aria-hidden />, danger: true, onSelect: () => void ask(each) },
                  ]}
                />
              )}
            </div>
            {checking === each.id && <RepositoryChecks id={each.id} />}
          </li>
        ))}
      </List>
      {editing && <RepositoryDialog squad={squad} repository={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />}
    </Section>
  )
}
