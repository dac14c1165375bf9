import { cx } from './cx'
import { hueOf, initials } from './person'

export type Pulse = 'working' | 'waiting' | 'trouble' | 'idle' | undefined

const RINGS: Record<Exclude<Pulse, undefined>, string> = {
  working: 'bg-live',
  waiting: 'bg-busy',
  trouble: 'bg-danger',
  idle: 'bg-line-strong',
}

/**
 * A member's mark: initials on a hue of their own, with what they do now. Still where there may
 * be a hundred of them: each mark that breathes is a layer that the browser draws anew.
 */
export function Avatar({ id, name, size = 20, pulse, hidden, still }: { id: string; name: string; size?: number; pulse?: Pulse; hidden?: boolean; still?: boolean }) {
  const hue = hueOf(id)
  return (
    <span className="relative inline-flex shrink-0" role={hidden ? undefined : 'img'} aria-hidden={hidden} aria-label={hidden ? undefined : pulse ? `${name}, ${pulse}` : name} title={hidden ? undefined : name}>
      <span
        className="inline-flex items-center justify-center rounded-full font-semibold select-none"
        style={{ width: size, height: size, fontSize: size * 0.42, color: `light-dark(oklch(0.38 0.09 ${hue}), oklch(0.88 0.07 ${hue}))`, background: `light-dark(oklch(0.91 0.05 ${hue}), oklch(0.36 0.06 ${hue}))` }}
      >
        {initials(name)}
      </span>
      {pulse && <span className={cx('absolute -right-0.5 -bottom-0.5 size-2 rounded-full ring-2 ring-surface', RINGS[pulse], pulse === 'working' && !still && 'animate-breathe')} />}
    </span>
  )
}
