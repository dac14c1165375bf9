export function SandboxesPage() { return null }
