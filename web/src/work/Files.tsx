import { useQuery } from '@tanstack/react-query'
import { ChevronRight, Download, File, FileSymlink, Folder, FolderTree } from 'lucide-react'
import { useState } from 'react'
import { contentURL, fileQuery, filesQuery } from '@/api/sandboxes'
import type { Execution, FileInfo, Member } from '@/api/types'
import { bytes } from '@/format/number'
import { cx } from '@/ui/cx'
import { Empty, ErrorState, Rows } from '@/ui/States'
import { Time } from '@/ui/Time'

/** The files of the sandbox, as they are now. */
export function Files({ member, execution }: { member: Member; execution: Execution | undefined }) {
  const sandbox = execution?.sandbox_id
  if (!sandbox) return <Empty icon={<FolderTree aria-hidden />} title="There is no sandbox">Files can be browsed while a sandbox exists.</Empty>
  return <Browser key={sandbox} sandbox={sandbox} start={member.git_context?.path ?? '/home/user'} />
}

function Browser({ sandbox, start }: { sandbox: string; start: string }) {
  const [folder, setFolder] = useState(start)
  const [open, setOpen] = useState<FileInfo>()
  const files = useQuery(filesQuery(sandbox, folder))
  const rows = (files.data ?? []).toSorted((a, b) => Number(b.type === 'dir') - Number(a.type === 'dir') || a.name.localeCompare(b.name))
  const choose = (file: FileInfo) => {
    if (file.type !== 'dir') return setOpen(file)
    setOpen(undefined)
    setFolder(file.path)
  }
  return (
    <div className="flex h-full flex-col md:flex-row">
      <div className={cx('flex min-h-0 flex-col md:w-80 md:border-r', open ? 'max-md:hidden' : 'flex-1 md:flex-none')}>
        <Crumbs path={folder} onOpen={setFolder} />
        <div className="min-h-0 flex-1 overflow-y-auto p-1.5">
          {files.isPending && <Rows what="the files" />}
          {files.isError && <ErrorState error={files.error} what="The files" retry={() => void files.refetch()} />}
          {files.data?.length === 0 && <p className="p-6 text-center text-sm text-faint">This folder is empty.</p>}
          <ul>
            {rows.map((file) => {
              const Icon = file.type === 'dir' ? Folder : file.type === 'symlink' ? FileSymlink : File
              return (
                <li key={file.path}>
                  <button type="button" onClick={() => choose(file)} className={cx('flex w-full items-center gap-2.5 rounded-md px-2 py-1.5 text-left text-sm hover:bg-hover', open?.path === file.path && 'bg-hover')}>
                    <Icon aria-hidden className={cx('size-4 shrink-0', file.type === 'dir' ? 'text-accent' : 'text-faint')} />
                    <span className="min-w-0 flex-1 truncate">{file.name}</span>
                    {file.type === 'file' && <span className="tabular text-xs text-faint">{bytes(file.size)}</span>}
                  </button>
                </li>
              )
            })}
          </ul>
        </div>
      </div>
      <div className={cx('min-h-0 min-w-0 flex-1', !open && 'max-md:hidden')}>
        {open ? <Viewer sandbox={sandbox} file={open} onClose={() => setOpen(undefined)} /> : <Empty icon={<File aria-hidden />} title="Choose a file">It is read from the sandbox as it is at this moment.</Empty>}
      </div>
    </div>
  )
}

function Crumbs({ path, onOpen }: { path: string; onOpen: (path: string) => void }) {
  const parts = path.split('/').filter(Boolean)
  return (
    <nav aria-label="Folder" className="flex shrink-0 flex-wrap items-center gap-0.5 border-b px-3 py-2 font-mono text-xs">
      <button type="button" className="rounded px-1 hover:bg-hover" onClick={() => onOpen('/')}>/</button>
      {parts.map((part, i) => (
        <span key={parts.slice(0, i + 1).join('/')} className="flex items-center gap-0.5">
          {i > 0 && <ChevronRight aria-hidden className="size-3 text-faint" />}
          <button type="button" className="rounded px-1 hover:bg-hover" onClick={() => onOpen(`/${parts.slice(0, i + 1).join('/')}`)}>{part}</button>
        </span>
      ))}
    </nav>
  )
}

function Viewer({ sandbox, file, onClose }: { sandbox: string; file: FileInfo; onClose: () => void }) {
  const content = useQuery(fileQuery(sandbox, file.path))
  return (
    <div className="flex h-full flex-col">
      <header className="flex shrink-0 items-center gap-3 border-b px-4 py-2 text-sm">
        <button type="button" onClick={onClose} className="text-accent md:hidden">Back</button>
        <h2 className="min-w-0 flex-1 truncate font-mono text-xs">{file.path}</h2>
        <span className="text-xs text-faint"><Time at={file.modified_at} /></span>
        <a href={contentURL(sandbox, file.path)} download={file.name} className="flex items-center gap-1.5 text-muted hover:text-ink"><Download aria-hidden className="size-4" />Download</a>
      </header>
      <div className="min-h-0 flex-1 overflow-auto">
        {content.isPending && <Rows what="the file" />}
        {content.isError && <ErrorState error={content.error} what={file.name} retry={() => void content.refetch()} />}
        {content.data?.binary && <Empty title="A binary file">It cannot be shown as text; download it instead.</Empty>}
        {content.data && !content.data.binary && <pre tabIndex={0} aria-label={file.name} className="min-h-full p-4 font-mono text-xs leading-relaxed">{content.data.text}{content.data.truncated && '\n… the rest is left out; download the file to see it'}</pre>}
      </div>
    </div>
  )
}
