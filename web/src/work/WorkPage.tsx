export function WorkPage() { return null }
