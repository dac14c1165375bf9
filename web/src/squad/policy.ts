import type { Squad, SquadConfig } from '@/api/types'

export interface PolicyForm {
  name: string
  description: string
  status: Squad['status']
  task: string
  day: string
  total: string
  tokens: string
  provider: string
  template: string
  running: string
  attempts: string
  egress: string
  allow: string
  deny: string
}

const text = (value: number | undefined) => (value ? String(value) : '')
const lines = (value: string) => value.split('\n').map((line) => line.trim()).filter(Boolean)
const amount = (value: string) => (Number(value) > 0 ? Number(value) : undefined)

export function formOf({ name, description, status, config }: Squad): PolicyForm {
  return {
    name, description, status,
    task: text(config.budget?.task_usd),
    day: text(config.budget?.day_usd),
    total: text(config.budget?.total_usd),
    tokens: text(config.budget?.tokens),
    provider: config.provider ?? '',
    template: config.template ?? '',
    running: text(config.max_running),
    attempts: text(config.max_attempts),
    egress: (config.egress ?? []).join('\n'),
    allow: (config.allow_commands ?? []).join('\n'),
    deny: (config.deny_commands ?? []).join('\n'),
  }
}

/** The policy of the form; what the form does not show stays as it was. */
export function configOf(form: PolicyForm, old: SquadConfig): SquadConfig {
  const next: SquadConfig = { ...old, budget: {} }
  const put = <K extends keyof SquadConfig>(key: K, value: SquadConfig[K] | undefined) => {
    if (value === undefined || value === '') delete next[key]
    else next[key] = value
  }
  const budget = { task_usd: amount(form.task), day_usd: amount(form.day), total_usd: amount(form.total), tokens: amount(form.tokens) }
  next.budget = Object.fromEntries(Object.entries(budget).filter(([, value]) => value !== undefined))
  put('provider', form.provider)
  put('template', form.template.trim())
  put('max_running', amount(form.running))
  put('max_attempts', amount(form.attempts))
  put('egress', lines(form.egress))
  put('allow_commands', lines(form.allow))
  put('deny_commands', lines(form.deny))
  return next
}
