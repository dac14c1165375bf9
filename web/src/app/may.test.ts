import { expect, test } from 'vitest'
import type { Me } from '@/api/types'
import { roleIn } from './may'

const person = (actor: Me['actor'], roles: Me['roles'] = {}): Me => ({ id: 'u', name: 'Vera', email: '', admin: false, created_at: '', actor, roles }) as Me

test('a person is in a squad what they were made there', () => {
  const vera = person({ ceiling: 'admin' }, { one: 'viewer', two: 'member' })
  expect([roleIn(vera, 'one'), roleIn(vera, 'two'), roleIn(vera, 'three')]).toEqual(['viewer', 'member', ''])
})

test('an administrator of the installation has every role', () => {
  expect(roleIn(person({ admin: true, ceiling: 'admin' }), 'any')).toBe('admin')
})

test('a narrowed token allows no more than it says', () => {
  expect(roleIn(person({ admin: true, ceiling: 'viewer' }), 'any')).toBe('viewer')
  expect(roleIn(person({ ceiling: 'member' }, { one: 'admin' }), 'one')).toBe('member')
})

test('before it is known who asks, nothing is allowed', () => {
  expect(roleIn(undefined, 'one')).toBe('')
  expect(roleIn(null, 'one')).toBe('')
})
