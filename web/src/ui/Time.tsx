import { age, ago, full } from '@/format/time'
import { useNow } from './useNow'

export function Time({ at, short }: { at: string | undefined; short?: boolean }) {
  const now = useNow()
  if (!at) return null
  return <time dateTime={at} title={full(at)} className="tabular whitespace-nowrap">{short ? age(at, now) : ago(at, now)}</time>
}
