export function InsightsPage() { return null }
