import { useCallback, useState } from 'react'
import type { UsageRow } from '@/api/types'
import { compact, usd } from '@/format/number'
import { day } from '@/format/time'
import { roundTop } from './days'

const HEIGHT = 190
const LEFT = 52
const FOOT = 22

/** Bars of our own: a chart library would weigh more than this page. */
export function DayBars({ rows }: { rows: UsageRow[] }) {
  const [at, setAt] = useState<number>()
  const [width, setWidth] = useState(800)
  const measure = useCallback((node: HTMLElement | null) => {
    if (!node) return undefined
    const watch = new ResizeObserver(() => setWidth(Math.max(240, node.clientWidth)))
    watch.observe(node)
    return () => watch.disconnect()
  }, [])
  const every = Math.ceil(rows.length / (width / 58))
  const top = roundTop(Math.max(...rows.map((row) => row.cost_usd)))
  const step = (width - LEFT) / rows.length
  const y = (value: number) => HEIGHT - FOOT - (value / top) * (HEIGHT - FOOT - 8)
  const chosen = at === undefined ? undefined : rows[at]
  const total = rows.reduce((sum, row) => sum + row.cost_usd, 0)
  if (total === 0) return <p className="py-6 text-center text-sm text-muted">Nothing was spent in this time.</p>
  return (
    <figure ref={measure}>
      <figcaption className="mb-2 min-h-5 text-sm text-muted">
        {chosen ? <><b className="font-medium text-ink">{day(chosen.key)}</b>: {usd(chosen.cost_usd)}, {compact(chosen.tokens_in + chosen.tokens_out)} tokens in {chosen.calls} calls</> : <>{usd(total)} in {rows.length} days</>}
      </figcaption>
      <svg width={width} height={HEIGHT} role="img" aria-label={`Cost by day, ${usd(total)} in all`} className="overflow-visible">
        {[0, 0.5, 1].map((share) => (
          <g key={share} className="text-faint">
            <line x1={LEFT} x2={width} y1={y(top * share)} y2={y(top * share)} className="stroke-line" />
            <text x={LEFT - 8} y={y(top * share) + 4} textAnchor="end" fontSize="11" fill="currentColor">{usd(top * share)}</text>
          </g>
        ))}
        {rows.map((row, i) => (
          <g key={row.key} onMouseEnter={() => setAt(i)} onMouseLeave={() => setAt(undefined)}>
            <rect x={LEFT + i * step} y={0} width={step} height={HEIGHT} fill="transparent" />
            <rect x={LEFT + i * step + step * 0.16} width={step * 0.68} y={y(row.cost_usd)} height={Math.max(row.cost_usd > 0 ? 2 : 0, HEIGHT - FOOT - y(row.cost_usd))} rx="3" className={at === i ? 'fill-accent' : 'fill-accent/75'} />
            {(rows.length - 1 - i) % every === 0 && <text x={LEFT + (i + 0.5) * step} y={HEIGHT - 4} textAnchor="middle" fontSize="11" className="fill-faint">{day(row.key)}</text>}
          </g>
        ))}
      </svg>
      <table className="sr-only">
        <caption>Cost by day</caption>
        <thead><tr><th>Day</th><th>Cost</th></tr></thead>
        <tbody>{rows.map((row) => <tr key={row.key}><td>{row.key}</td><td>{usd(row.cost_usd)}</td></tr>)}</tbody>
      </table>
    </figure>
  )
}
