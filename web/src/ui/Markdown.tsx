import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'

const PARTS: Components = {
  a: ({ href, children }) => <a href={href} target="_blank" rel="noreferrer noopener">{children}</a>,
  input: ({ checked }) => <input type="checkbox" checked={checked ?? false} disabled aria-label={checked ? 'done' : 'to do'} />,
  img: ({ alt }) => <span className="text-faint">[picture: {alt}]</span>,
}

/** Text by people and agents. No HTML passes, and links open elsewhere. */
export default function Markdown({ text }: { text: string }) {
  return (
    <div className="prose-squad">
      <ReactMarkdown remarkPlugins={[remarkGfm]} components={PARTS}>{text}</ReactMarkdown>
    </div>
  )
}
