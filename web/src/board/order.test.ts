import { describe, expect, test } from 'vitest'
import { aTask } from '@/test/make'
import { columnsOf, firstColumn, labelsOf, matches, placeAt, placeBetween } from './order'

describe('columns', () => {
  test('hold their tasks by place, then by number', () => {
    const columns = columnsOf([aTask({ id: 'a', position: 2, number: 1 }), aTask({ id: 'b', position: 1, number: 2 }), aTask({ id: 'c', position: 1, number: 1 })])
    expect(columns.todo.map((task) => task.id)).toEqual(['c', 'b', 'a'])
  })
  test('Done shows what was finished last first', () => {
    const columns = columnsOf([aTask({ id: 'old', status: 'done', updated_at: '2026-01-01T00:00:00Z' }), aTask({ id: 'new', status: 'done', updated_at: '2026-02-01T00:00:00Z' })])
    expect(columns.done.map((task) => task.id)).toEqual(['new', 'old'])
  })
})

describe('places', () => {
  test.each([[undefined, undefined, 1], [undefined, 5, 4], [5, undefined, 6], [1, 2, 1.5]])('between %s and %s is %s', (before, after, place) => {
    expect(placeBetween(before, after)).toBe(place)
  })
  test('a card that moves inside its column does not count itself', () => {
    const column = [aTask({ id: 'a', position: 1 }), aTask({ id: 'b', position: 2 }), aTask({ id: 'c', position: 3 })]
    expect(placeAt(column, 1, 'a')).toBe(2.5)
    expect(placeAt(column, 0, 'c')).toBe(0)
    expect(placeAt(column, 2, 'a')).toBe(4)
  })
})

describe('filters', () => {
  const task = aTask({ number: 42, title: 'Fix the Lease', assignee_id: 'm', repository_id: 'r', labels: ['bug'] })
  test.each([
    [{}, true], [{ member: 'm' }, true], [{ member: 'x' }, false], [{ repository: 'x' }, false], [{ label: 'bug' }, true],
    [{ label: 'ui' }, false], [{ text: 'lease' }, true], [{ text: '#42' }, true], [{ text: 'nothing' }, false], [{ member: 'm', text: 'zzz' }, false],
  ])('%j: %s', (filter, fits) => expect(matches(task, filter)).toBe(fits))

  test('labels are listed once, in order', () => {
    expect(labelsOf([aTask({ labels: ['b', 'a'] }), aTask({ labels: ['a'] }), aTask()])).toEqual(['a', 'b'])
  })
})

test('the first column shown is where things happen', () => {
  expect(firstColumn(columnsOf([aTask({ status: 'backlog' }), aTask({ id: 'x', status: 'in_progress' })]))).toBe('in_progress')
  expect(firstColumn(columnsOf([aTask({ status: 'done' }), aTask({ id: 'x', status: 'in_review' })]))).toBe('in_review')
  expect(firstColumn(columnsOf([]))).toBe('todo')
})
