import { expect, test } from 'vitest'
import { rank } from './commands'

const command = (name: string) => ({ group: 'Go', name, run: () => undefined })

test('the palette finds by letters in order, the tightest first', () => {
  const all = [command('Sandboxes'), command('#12 Add a box'), command('Board')]
  expect(rank(all, 'box', 9).map((each) => each.name)).toEqual(['#12 Add a box', 'Sandboxes'])
  expect(rank(all, 'brd', 9).map((each) => each.name)).toEqual(['Board'])
  expect(rank(all, '', 2)).toHaveLength(2)
})
