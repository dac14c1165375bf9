import { expect, test } from 'vitest'
import type { Repository } from '@/api/types'
import { changeOf, formOf, newOf } from './repository'

const row = {
  id: 'r', squad_id: 's', name: 'owner/name', forge: 'gitea', url: 'https://git.example.org/owner/name.git', default_branch: 'main', reviewers: ['ada'], created_at: '', updated_at: '',
  policy: { path: '/home/user/x', merge_method: 'rebase', check_command: 'make test', draft: true, labels: ['agent'] },
} as Repository

test('a form that nobody touched changes nothing', () => {
  const change = changeOf(formOf(row), row)
  expect(change.policy).toEqual(row.policy)
  expect(change.reviewers).toEqual(['ada'])
  expect(change.default_branch).toBe('main')
})

test('what is emptied is taken away, what is not shown stays', () => {
  const change = changeOf({ ...formOf(row), check: ' ', labels: '', draft: '' }, row)
  expect(change.policy).toEqual({ path: '/home/user/x', merge_method: 'rebase' })
})

test('a local repository carries no address and no credential', () => {
  const body = newOf({ ...formOf(), name: ' hello ', url: 'https://elsewhere.example', credential: 'c', path: '/srv/hello.git' })
  expect(body).toEqual({ name: 'hello', forge: 'local', import_path: '/srv/hello.git', policy: { merge_method: 'squash' } })
})
