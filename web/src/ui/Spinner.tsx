import { LoaderCircle } from 'lucide-react'

export function Spinner({ label }: { label?: string }) {
  return (
    <span className="inline-flex items-center gap-2 text-muted" role={label ? 'status' : undefined}>
      <LoaderCircle aria-hidden className="size-4 animate-spin" />
      {label && <span>{label}</span>}
    </span>
  )
}
