import { cx } from '@/ui/cx'

/** How the squad is, in two numbers: who works, and what waits for a person. */
export function Pulse({ working, waiting }: { working: number; waiting: number }) {
  return (
    <span className="flex items-center gap-3 text-xs max-sm:hidden">
      <span className="flex items-center gap-1.5"><span aria-hidden className={cx('size-1.5 rounded-full', working ? 'animate-breathe bg-live' : 'bg-line-strong')} />{working ? `${working} at work` : 'nobody at work'}</span>
      {waiting > 0 && <span className="flex items-center gap-1.5 font-medium text-warn"><span aria-hidden className="size-1.5 rounded-full bg-busy" />{waiting === 1 ? '1 waits for you' : `${waiting} wait for you`}</span>}
    </span>
  )
}
