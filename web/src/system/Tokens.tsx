import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Plus, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { createToken, deleteToken, tokensQuery } from '@/api/system'
import type { APIToken } from '@/api/types'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { useConfirm } from '@/ui/confirm'
import { Field, Input, Select } from '@/ui/Field'
import { Time } from '@/ui/Time'

/** Tokens of people and keys of SDKs; the secret is shown once. */
export function Tokens() {
  const tokens = useQuery(tokensQuery)
  const cache = useQueryClient()
  const confirm = useConfirm()
  const [adding, setAdding] = useState(false)
  const again = () => cache.invalidateQueries({ queryKey: keys.tokens })
  const revoke = useMutation({ mutationFn: (token: APIToken) => deleteToken(token.id), meta: { failed: 'The token was not revoked' }, onSuccess: again })
  const ask = async (token: APIToken) => {
    if (await confirm({ title: `Revoke ${token.name}?`, lost: 'Whatever uses it is refused from now on.', verb: 'Revoke' })) revoke.mutate(token)
  }
  const shown = (tokens.data ?? []).filter((token) => token.kind === 'user' || token.kind === 'e2b')
  return (
    <section aria-label="Tokens" className="rounded-lg border bg-surface p-4 shadow-card">
      <div className="mb-3 flex items-center justify-between"><h2 className="text-sm font-semibold">Tokens and SDK keys</h2><Button size="sm" onClick={() => setAdding(true)}><Plus aria-hidden className="size-4" />New token</Button></div>
      {shown.length === 0 && <p className="text-sm text-faint">None.</p>}
      <ul className="divide-y text-sm">
        {shown.map((token) => (
          <li key={token.id} className="flex items-center gap-3 py-1.5">
            <span className="font-medium">{token.name}</span><Badge tone={token.kind === 'e2b' ? 'info' : 'neutral'}>{token.kind === 'e2b' ? 'E2B key' : 'API token'}</Badge>
            <code className="font-mono text-xs text-faint">{token.prefix}…</code>
            <span className="ml-auto text-xs text-faint">{token.last_used_at ? <>used <Time at={token.last_used_at} /></> : 'never used'}</span>
            <Button look="quiet" size="icon" aria-label={`Revoke ${token.name}`} onClick={() => void ask(token)}><Trash2 aria-hidden className="size-4" /></Button>
          </li>
        ))}
      </ul>
      {adding && <TokenDialog onClose={() => { setAdding(false); void again() }} />}
    </section>
  )
}

function TokenDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [kind, setKind] = useState<'user' | 'e2b'>('user')
  const create = useMutation({ mutationFn: () => createToken({ name: name.trim(), kind }), meta: { failed: 'No token was made' } })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="New token" about={create.data ? 'Copy it now; it is not shown again.' : 'For the API and the command line, or for E2B SDKs.'}>
      {create.data ? <Input aria-label="The new token" readOnly className="font-mono" value={create.data.secret} onFocus={(event) => event.target.select()} /> : (
        <form onSubmit={submit} className="space-y-4">
          <Field label="Name">{(id) => <Input id={id} value={name} onChange={(event) => setName(event.target.value)} required maxLength={100} />}</Field>
          <Field label="Opens">{(id) => <Select id={id} value={kind} onChange={(event) => setKind(event.target.value === 'e2b' ? 'e2b' : 'user')}><option value="user">The API of this server</option><option value="e2b">Sandboxes, for E2B SDKs</option></Select>}</Field>
          <div className="flex justify-end"><Button type="submit" look="primary" busy={create.isPending}>Make it</Button></div>
        </form>
      )}
    </Dialog>
  )
}
