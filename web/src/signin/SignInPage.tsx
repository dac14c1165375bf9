import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { wordsOf } from '@/api/client'
import { keys } from '@/api/keys'
import { signIn } from '@/api/me'
import { Button } from '@/ui/Button'
import { Field, Input } from '@/ui/Field'

export function SignInPage() {
  const [token, setToken] = useState('')
  const cache = useQueryClient()
  const navigate = useNavigate()
  const { to, expired } = useSearch({ from: '/sign-in' })
  const enter = useMutation({
    mutationFn: () => signIn(token.trim()),
    meta: { quiet: true },
    onSuccess: async () => {
      cache.removeQueries()
      await cache.invalidateQueries({ queryKey: keys.me })
      await navigate({ to: to ?? '/' })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (token.trim()) enter.mutate()
  }
  return (
    <main className="flex h-full items-center justify-center p-6">
      <div className="w-full max-w-sm">
        <img src="/icon.svg" alt="" className="mb-6 size-11 rounded-xl" />
        <h1 className="text-xl font-semibold tracking-tight">Sign in to Agent Squad</h1>
        <p className="mt-1.5 text-sm text-pretty text-muted">
          Open the link that <code className="rounded bg-sunken px-1 font-mono text-xs">squad up</code> printed, or paste a token here.
        </p>
        {expired && (
          <p role="alert" className="mt-5 rounded-md bg-warn-soft p-3 text-sm text-warn">
            That link was used before or is too old. <code className="font-mono text-xs">squad signin</code> prints a new one.
          </p>
        )}
        <form onSubmit={submit} className="mt-6 space-y-4">
          <Field label="Token" error={enter.isError ? wordsOf(enter.error) : undefined} hint={<>The administrator’s is in the data folder, in <code className="font-mono">admin.token</code>.</>}>
            {(id) => <Input id={id} type="password" autoComplete="current-password" value={token} onChange={(e) => setToken(e.target.value)} required className="h-9 font-mono" />}
          </Field>
          <Button type="submit" look="primary" busy={enter.isPending} className="h-9 w-full">Sign in</Button>
        </form>
      </div>
    </main>
  )
}
