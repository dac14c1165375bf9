// A repository as a form, and back: what the form does not show stays as it was.
import type { Repository, RepositoryPolicy } from '@/api/types'

export type RepositoryForm = Record<'name' | 'forge' | 'url' | 'api' | 'credential' | 'branch' | 'check' | 'method' | 'path' | 'reviewers' | 'labels' | 'draft' | 'train' | 'template', string>

const list = (text: string) => text.split(',').map((each) => each.trim()).filter(Boolean)

export function formOf(repository?: Repository): RepositoryForm {
  const policy = repository?.policy ?? {}
  return {
    name: repository?.name ?? '',
    forge: repository?.forge ?? 'local',
    url: repository?.url ?? '',
    api: repository?.api_url ?? '',
    credential: repository?.credential_id ?? '',
    branch: repository?.default_branch ?? '',
    check: policy.check_command ?? '',
    method: policy.merge_method ?? 'squash',
    path: '',
    reviewers: (repository?.reviewers ?? []).join(', '),
    labels: (policy.labels ?? []).join(', '),
    draft: policy.draft ? 'draft' : '',
    train: policy.merge_train ? 'on' : '',
    template: repository?.pr_template ?? '',
  }
}

function policyOf(form: RepositoryForm, old: RepositoryPolicy = {}): RepositoryPolicy {
  const { check_command: _c, labels: _l, draft: _d, merge_train: _t, ...rest } = old
  const labels = list(form.labels)
  return {
    ...rest,
    merge_method: form.method as 'merge' | 'squash' | 'rebase',
    ...(form.check.trim() && { check_command: form.check.trim() }),
    ...(labels.length > 0 && { labels }),
    ...(form.draft && { draft: true }),
    ...(form.train && { merge_train: true }),
  }
}

export function changeOf(form: RepositoryForm, old: Repository) {
  return {
    name: form.name.trim(),
    default_branch: form.branch.trim(),
    credential_id: form.credential,
    reviewers: list(form.reviewers),
    pr_template: form.template,
    policy: policyOf(form, old.policy),
  }
}

export function newOf(form: RepositoryForm) {
  const remote = form.forge !== 'local'
  const reviewers = list(form.reviewers)
  return {
    name: form.name.trim(),
    forge: form.forge as Repository['forge'],
    ...(remote && form.url && { url: form.url.trim() }),
    ...(form.forge === 'gitea' && form.api && { api_url: form.api.trim() }),
    ...(remote && form.credential && { credential_id: form.credential }),
    ...(form.branch && { default_branch: form.branch.trim() }),
    ...(!remote && form.path && { import_path: form.path.trim() }),
    ...(reviewers.length > 0 && { reviewers }),
    policy: policyOf(form),
  }
}
