import { expect, test } from 'vitest'
import type { Squad } from '@/api/types'
import { configOf, formOf } from './policy'

const squad: Squad = { id: 's', name: 'S', description: '', status: 'active', created_at: '', updated_at: '', config: { provider: 'local', budget: { day_usd: 4 }, egress: ['a.example'], cleanup: { keep_branch: true } } }

test('a policy survives the form, with what the form does not show', () => {
  const config = configOf(formOf(squad), squad.config)
  expect(config).toMatchObject({ provider: 'local', budget: { day_usd: 4 }, egress: ['a.example'], cleanup: { keep_branch: true } })
})

test('an emptied field lifts its limit', () => {
  const config = configOf({ ...formOf(squad), day: '', provider: '', egress: '\n' }, squad.config)
  expect(config.budget).toEqual({})
  expect(config.provider).toBeUndefined()
  expect(config.egress).toEqual([])
})
