// Amounts in the reader's own language.
import { keep, locale } from './locale'

const dollars = keep((digits: number) => new Intl.NumberFormat(locale(), { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumFractionDigits: digits, maximumFractionDigits: digits }))

/** Money that agents spend: cents matter below ten dollars, not above a thousand. */
export function usd(amount: number): string {
  const digits = amount !== 0 && amount < 0.01 ? 4 : amount < 1000 ? 2 : 0
  return dollars(digits).format(amount)
}

export function compact(n: number): string {
  return new Intl.NumberFormat(locale(), { notation: 'compact', maximumFractionDigits: 1 }).format(n)
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${new Intl.NumberFormat(locale()).format(n)} ${n === 1 ? one : many}`
}

export function bytes(n: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let value = n
  let at = 0
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024
    at += 1
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[at] ?? ''}`
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return '–'
  return new Intl.NumberFormat(locale(), { style: 'percent', maximumFractionDigits: part === whole ? 0 : 1 }).format(part / whole)
}
