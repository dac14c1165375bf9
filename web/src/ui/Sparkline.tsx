/** A small line without axes; the words beside it carry the value. */
export function Sparkline({ values, label, max, width = 88, height = 22 }: { values: number[]; label: string; max?: number; width?: number; height?: number }) {
  if (values.length < 2) return <span className="text-xs text-faint">no samples yet</span>
  const top = Math.max(max ?? 0, ...values, 0.0001)
  const step = width / (values.length - 1)
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${(height - 2 - (value / top) * (height - 4)).toFixed(1)}`)
  return (
    <svg role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} width={width} height={height} className="overflow-visible text-accent">
      <polygon points={`0,${height} ${points.join(' ')} ${width},${height}`} className="fill-current opacity-12" />
      <polyline points={points.join(' ')} fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinejoin="round" />
    </svg>
  )
}
