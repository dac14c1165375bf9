import { type FormEvent, useState } from 'react'
import type { Sandbox } from '@/api/types'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input } from '@/ui/Field'

/** Opens what listens on a port inside, through the server's own address. */
export function PortDialog({ sandbox, onClose }: { sandbox: Sandbox; onClose: () => void }) {
  const [port, setPort] = useState('3000')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    open(previewURL(sandbox, port, location), '_blank', 'noopener')
    onClose()
  }
  return (
    <Dialog open onOpenChange={onClose} title="Open a port" about="A server inside the sandbox, in a new tab.">
      <form onSubmit={submit} className="space-y-4">
        <Field label="Port">{(id) => <Input id={id} type="number" min="1" max="65535" required value={port} onChange={(event) => setPort(event.target.value)} />}</Field>
        <div className="flex justify-end"><Button type="submit" look="primary">Open</Button></div>
      </form>
    </Dialog>
  )
}

/** Cloud sandboxes have a domain of their own; local ones answer under this host's name. */
function previewURL(sandbox: Sandbox, port: string, here: { protocol: string; host: string }): string {
  const id = sandbox.e2b_id || sandbox.id
  if (sandbox.provider === 'e2b') return `https://${port}-${id}.e2b.app/`
  const host = /^(127\.|\[|localhost)/.test(here.host) ? `localhost${here.host.slice(here.host.lastIndexOf(':'))}` : here.host
  return `${here.protocol}//${port}-${id}.${host}/`
}
