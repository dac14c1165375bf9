import { describe, expect, test } from 'vitest'
import { anExecution } from '@/test/make'
import { livenessWords, pulseOf, STEPS, stepIndex } from './steps'

describe('steps', () => {
  test('stand in the order of the recipe; review lies behind all of them', () => {
    expect(stepIndex(undefined)).toBe(0)
    expect(stepIndex('clone')).toBe(1)
    expect(stepIndex('review')).toBe(STEPS.length)
  })
})

describe('liveness in words', () => {
  test.each([
    [anExecution({ status: 'queued' }), 'queued'],
    [anExecution({ status: 'queued', liveness: { detail: 'waits for #3 Paint the fence' } }), 'waits for #3 Paint the fence'],
    [anExecution({ liveness: { state: 'command', detail: 'go test' } }), 'go test'],
    [anExecution({ liveness: { state: 'person' } }), 'waits for you'],
    [anExecution({ step: 'clone', percent: 40 }), 'clone 40%'],
    [anExecution({ step: 'branch' }), 'branch'],
  ])('%#', (execution, words) => expect(livenessWords(execution)).toBe(words))
})

describe('the dot on an avatar', () => {
  test.each([
    [undefined, undefined],
    [anExecution(), 'working'],
    [anExecution({ liveness: { state: 'silent' } }), 'trouble'],
    [anExecution({ status: 'waiting' }), 'waiting'],
    [anExecution({ liveness: { state: 'person' } }), 'waiting'],
    [anExecution({ status: 'succeeded' }), 'idle'],
    [anExecution({ status: 'failed' }), 'trouble'],
  ])('%#', (execution, pulse) => expect(pulseOf(execution)).toBe(pulse))
})
