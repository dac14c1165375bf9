const BY_ENDING: Record<string, string> = {
  go: 'go', ts: 'typescript', tsx: 'tsx', js: 'javascript', mjs: 'javascript', jsx: 'jsx', py: 'python', rs: 'rust', rb: 'ruby', java: 'java', kt: 'kotlin', c: 'c', h: 'c', cc: 'cpp', cpp: 'cpp', cs: 'csharp',
  sh: 'bash', bash: 'bash', sql: 'sql', md: 'markdown', json: 'json', yaml: 'yaml', yml: 'yaml', toml: 'ini', html: 'xml', xml: 'xml', css: 'css', proto: 'protobuf', php: 'php', swift: 'swift',
}

/** The highlighter's name for a file's language; plain text where it is unknown. */
export function langOf(path: string): string {
  const name = path.split('/').at(-1) ?? ''
  if (/^(Dockerfile|Makefile)$/.test(name)) return name.toLowerCase()
  return BY_ENDING[name.split('.').at(-1)?.toLowerCase() ?? ''] ?? 'plaintext'
}
