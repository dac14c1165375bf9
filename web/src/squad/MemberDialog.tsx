import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { keys } from '@/api/keys'
import { changeMember, createMember } from '@/api/squads'
import type { AgentKind, Member } from '@/api/types'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { Field, Input, Select, Textarea } from '@/ui/Field'

const ROLES = ['developer', 'reviewer', 'tester', 'project_manager']
const MINUTE_NS = 60_000_000_000

type Form = Record<'name' | 'role' | 'specialization' | 'agent' | 'preset' | 'command' | 'provider' | 'model' | 'prompt' | 'turns' | 'minutes' | 'budget', string>

const formOf = (member?: Member): Form => ({
  name: member?.name ?? '',
  role: member?.role ?? 'developer',
  specialization: member?.specialization ?? '',
  agent: member?.config.agent ?? 'acp',
  preset: member?.config.preset ?? 'claude',
  command: member?.config.command ?? '',
  provider: member?.llm_provider || 'anthropic',
  model: member?.llm_model ?? '',
  prompt: member?.system_prompt ?? '',
  turns: String(member?.config.max_turns ?? ''),
  minutes: member?.config.timeout ? String(Math.round(member.config.timeout / MINUTE_NS)) : '',
  budget: String(member?.config.budget?.day_usd ?? ''),
})

function bodyOf(form: Form, member?: Member) {
  const { preset: _p, command: _c, max_turns: _t, timeout: _o, ...rest } = member?.config ?? {}
  const { day_usd: _d, ...limits } = rest.budget ?? {}
  return {
    name: form.name.trim(),
    role: form.role.trim(),
    specialization: form.specialization,
    llm_provider: form.agent === 'llm' ? form.provider : '',
    llm_model: form.agent === 'llm' ? form.model.trim() : '',
    system_prompt: form.prompt,
    config: {
      ...rest,
      agent: form.agent as AgentKind,
      ...(form.agent === 'acp' && form.preset && { preset: form.preset }),
      ...(form.agent !== 'llm' && form.command.trim() && { command: form.command.trim() }),
      ...(Number(form.turns) > 0 && { max_turns: Number(form.turns) }),
      ...(Number(form.minutes) > 0 && { timeout: Number(form.minutes) * MINUTE_NS }),
      budget: { ...limits, ...(Number(form.budget) > 0 && { day_usd: Number(form.budget) }) },
    },
  }
}

export function MemberDialog({ squad, member, onClose }: { squad: string; member?: Member | undefined; onClose: () => void }) {
  const cache = useQueryClient()
  const [form, setForm] = useState(() => formOf(member))
  const set = (key: keyof Form) => (event: { target: { value: string } }) => setForm({ ...form, [key]: event.target.value })
  const save = useMutation({
    mutationFn: () => (member ? changeMember(member.id, bodyOf(form, member)) : createMember({ squad_id: squad, ...bodyOf(form) })),
    meta: { failed: 'The member was not saved' },
    onSuccess: async () => {
      await cache.invalidateQueries({ queryKey: keys.members(squad) })
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={member ? `Edit ${member.name}` : 'Add a member'} side>
      <form onSubmit={submit} className="space-y-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Name">{(id) => <Input id={id} value={form.name} onChange={set('name')} required maxLength={100} />}</Field>
          <Field label="Role">{(id) => <><Input id={id} list="roles" value={form.role} onChange={set('role')} required maxLength={60} /><datalist id="roles">{ROLES.map((role) => <option key={role} value={role}>{role}</option>)}</datalist></>}</Field>
        </div>
        <Field label="Specialisation" hint="What it is good at; used when work is given out">{(id) => <Input id={id} value={form.specialization} onChange={set('specialization')} />}</Field>
        <Field label="Agent">{(id) => <Select id={id} value={form.agent} onChange={set('agent')}><option value="acp">Coding agent (ACP)</option><option value="llm">Built-in loop with a model</option><option value="command">A command in the sandbox</option></Select>}</Field>
        {form.agent === 'acp' && <Field label="Program">{(id) => <Select id={id} value={form.preset} onChange={set('preset')}><option value="claude">Claude Code</option><option value="codex">Codex</option><option value="gemini">Gemini CLI</option><option value="opencode">OpenCode</option><option value="">Another ACP command</option></Select>}</Field>}
        {(form.agent === 'command' || (form.agent === 'acp' && !form.preset)) && <Field label="Command">{(id) => <Textarea id={id} rows={3} className="font-mono" spellCheck={false} value={form.command} onChange={set('command')} required />}</Field>}
        {form.agent === 'llm' && (
          <div className="grid gap-4 sm:grid-cols-2">
            <Field label="Provider">{(id) => <Select id={id} value={form.provider} onChange={set('provider')}><option value="anthropic">Anthropic</option><option value="openai">OpenAI</option></Select>}</Field>
            <Field label="Model">{(id) => <Input id={id} value={form.model} onChange={set('model')} required />}</Field>
          </div>
        )}
        <Field label="System prompt">{(id) => <Textarea id={id} rows={7} value={form.prompt} onChange={set('prompt')} />}</Field>
        <div className="grid gap-4 sm:grid-cols-3">
          <Field label="Most turns">{(id) => <Input id={id} type="number" min="0" value={form.turns} onChange={set('turns')} placeholder="no limit" />}</Field>
          <Field label="Longest run, minutes">{(id) => <Input id={id} type="number" min="0" value={form.minutes} onChange={set('minutes')} placeholder="default" />}</Field>
          <Field label="US dollars a day">{(id) => <Input id={id} type="number" min="0" step="0.01" value={form.budget} onChange={set('budget')} placeholder="no limit" />}</Field>
        </div>
        <div className="flex justify-end gap-2 pt-2">
          <Button look="quiet" onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={save.isPending}>{member ? 'Save' : 'Add'}</Button>
        </div>
      </form>
    </Dialog>
  )
}
