import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { KeyRound, Plus, RotateCw, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { createCredential, credentialsQuery, deleteCredential, rotateCredential } from '@/api/squads'
import type { Credential } from '@/api/types'
import { Badge } from '@/ui/Badge'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { useConfirm } from '@/ui/confirm'
import { Field, Input, Select, Textarea } from '@/ui/Field'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'
import { say } from '@/ui/toast'
import { List, Section } from './Section'

const KINDS: Record<Credential['kind'], string> = { token: 'Forge token', github_app: 'GitHub App', model_key: 'Model key', e2b_key: 'E2B key', webhook: 'Webhook secret', sign_key: 'Signing key' }

/** Secrets can be written and replaced here, and never read. */
export function Credentials({ squad }: { squad: string }) {
  const credentials = useQuery(credentialsQuery(squad))
  const cache = useQueryClient()
  const confirm = useConfirm()
  const [open, setOpen] = useState<Credential | 'new'>()
  const again = () => cache.invalidateQueries({ queryKey: keys.credentials(squad) })
  const remove = useMutation({ mutationFn: (each: Credential) => deleteCredential(each.id), meta: { failed: 'The credential was not deleted' }, onSuccess: again })
  const ask = async (each: Credential) => {
    if (await confirm({ title: `Delete ${each.name}?`, lost: 'What uses it stops working at once. The secret cannot be brought back.', verb: 'Delete' })) remove.mutate(each)
  }
  return (
    <Section title="Credentials" about="Sealed on the server. No sandbox and no page ever sees them again." action={<Button look="primary" onClick={() => setOpen('new')}><Plus aria-hidden className="size-4" />Add a credential</Button>}>
      {credentials.isPending && <Rows what="the credentials" />}
      {credentials.isError && !credentials.data && <ErrorState error={credentials.error} what="The credentials" retry={() => void credentials.refetch()} />}
      {credentials.data?.length === 0 && <Empty icon={<KeyRound aria-hidden />} title="No credentials">The local forge and scripted agents need none.</Empty>}
      <List>
        {credentials.data?.map((each) => (
          <li key={each.id} className="flex items-center gap-3 p-3 sm:px-4">
            <KeyRound aria-hidden className="size-5 shrink-0 text-faint" />
            <div className="min-w-0 flex-1">
              <p className="flex flex-wrap items-center gap-2 text-sm font-medium">{each.name}<Badge>{KINDS[each.kind]}</Badge>{!each.squad_id && <Badge tone="info">whole installation</Badge>}</p>
              <p className="text-xs text-muted">{each.provider} <span className="font-mono">{each.hint}</span> · {each.rotated_at ? 'replaced' : 'added'} <Time at={each.rotated_at ?? each.created_at} /></p>
            </div>
            <Button look="quiet" size="icon" aria-label={`Replace the secret of ${each.name}`} onClick={() => setOpen(each)}><RotateCw aria-hidden className="size-4" /></Button>
            <Button look="quiet" size="icon" aria-label={`Delete ${each.name}`} onClick={() => void ask(each)}><Trash2 aria-hidden className="size-4" /></Button>
          </li>
        ))}
      </List>
      {open && <CredentialDialog squad={squad} credential={open === 'new' ? undefined : open} onClose={() => setOpen(undefined)} onSaved={again} />}
    </Section>
  )
}

function CredentialDialog({ squad, credential, onClose, onSaved }: { squad: string; credential: Credential | undefined; onClose: () => void; onSaved: () => void }) {
  const [form, setForm] = useState({ name: '', kind: 'token', provider: 'github', secret: '' })
  const set = (key: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const save = useMutation({
    mutationFn: () => (credential ? rotateCredential(credential.id, form.secret) : createCredential({ squad_id: squad, name: form.name.trim(), kind: form.kind as Credential['kind'], provider: form.provider, secret: form.secret })),
    meta: { failed: 'The secret was not stored' },
    onSuccess: () => {
      say(credential ? 'The secret was replaced' : 'The secret is sealed')
      onSaved()
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <Dialog open onOpenChange={(next) => !next && onClose()} title={credential ? `Replace the secret of ${credential.name}` : 'Add a credential'} about="Written once; it cannot be read back.">
      <form onSubmit={submit} className="space-y-4">
        {!credential && (
          <>
            <Field label="Name">{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={100} />}</Field>
            <div className="grid gap-4 sm:grid-cols-2">
              <Field label="Kind">{(id) => <Select id={id} value={form.kind} onChange={set('kind')}>{Object.entries(KINDS).map(([kind, name]) => <option key={kind} value={kind}>{name}</option>)}</Select>}</Field>
              <Field label="For">{(id) => <Select id={id} value={form.provider} onChange={set('provider')}><option value="github">GitHub</option><option value="gitea">Gitea</option><option value="anthropic">Anthropic</option><option value="openai">OpenAI</option><option value="gemini">Gemini</option><option value="e2b">E2B</option></Select>}</Field>
            </div>
          </>
        )}
        <Field label="Secret">{(id) => <Textarea id={id} rows={3} className="font-mono" value={form.secret} onChange={set('secret')} required autoComplete="off" spellCheck={false} />}</Field>
        <div className="flex justify-end gap-2"><Button look="quiet" onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={save.isPending}>Seal it</Button></div>
      </form>
    </Dialog>
  )
}
