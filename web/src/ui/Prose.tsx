import { lazy, Suspense } from 'react'

const Markdown = lazy(() => import('./Markdown'))

export function Prose({ text }: { text: string }) {
  return (
    <Suspense fallback={<p className="whitespace-pre-wrap">{text}</p>}>
      <Markdown text={text} />
    </Suspense>
  )
}
