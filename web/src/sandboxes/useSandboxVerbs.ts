import { useMutation, useQueryClient } from '@tanstack/react-query'
import { keys } from '@/api/keys'
import { forkSandbox, killSandbox, pauseSandbox, resumeSandbox } from '@/api/sandboxes'
import type { Sandbox } from '@/api/types'
import { upsert } from '@/live/reduce'
import { useConfirm } from '@/ui/confirm'
import { say } from '@/ui/toast'

export function useSandboxVerbs(sandbox: Sandbox) {
  const cache = useQueryClient()
  const confirm = useConfirm()
  const take = (row: Sandbox) => cache.setQueryData<Sandbox[]>(keys.allSandboxes, (list) => upsert(list, row))
  const kill = useMutation({ mutationFn: () => killSandbox(sandbox.id), meta: { failed: 'It was not destroyed' }, onSuccess: () => { take({ ...sandbox, status: 'terminated' }); say('The sandbox is gone') } })
  return {
    pause: useMutation({ mutationFn: () => pauseSandbox(sandbox.id), meta: { failed: 'It was not paused' }, onSuccess: take }),
    resume: useMutation({ mutationFn: () => resumeSandbox(sandbox.id), meta: { failed: 'It was not resumed' }, onSuccess: take }),
    fork: useMutation({ mutationFn: () => forkSandbox(sandbox.id, 1), meta: { failed: 'It was not forked' }, onSuccess: ({ items }) => { items.forEach(take); say('A copy of this moment runs now') } }),
    destroy: async () => {
      const yes = await confirm({ title: 'Destroy this sandbox?', lost: sandbox.task_id ? 'Its files and processes are gone. Work that was committed is safe outside; the agent inside loses what it did since its last checkpoint.' : 'Its files and processes are gone.', verb: 'Destroy' })
      if (yes) kill.mutate()
    },
  }
}
