export function SquadPage() { return null }
