import type { ButtonHTMLAttributes, Ref } from 'react'
import { cx } from './cx'
import { Spinner } from './Spinner'

type Look = 'primary' | 'plain' | 'quiet' | 'danger'

const LOOKS: Record<Look, string> = {
  primary: 'bg-accent text-accent-ink hover:opacity-90 shadow-card',
  plain: 'bg-surface text-ink border border-line hover:border-line-strong hover:bg-hover shadow-card',
  quiet: 'text-muted hover:text-ink hover:bg-hover',
  danger: 'bg-danger-soft text-danger hover:bg-danger hover:text-surface',
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look
  size?: 'sm' | 'md' | 'icon'
  busy?: boolean
  ref?: Ref<HTMLButtonElement>
}

export function Button({ look = 'plain', size = 'md', busy, className, children, disabled, type = 'button', ...rest }: ButtonProps) {
  const sizing = size === 'sm' ? 'h-7 px-2.5 text-sm gap-1.5' : size === 'icon' ? 'size-8 justify-center' : 'h-8 px-3 text-sm gap-2'
  return (
    <button
      type={type}
      disabled={disabled || busy}
      className={cx('inline-flex shrink-0 items-center justify-center rounded-md font-medium whitespace-nowrap transition-colors duration-100 disabled:opacity-50', busy && '[&>svg]:hidden', sizing, LOOKS[look], className)}
      {...rest}
    >
      {busy && <Spinner />}
      {children}
    </button>
  )
}
