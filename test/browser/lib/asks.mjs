// One question before anything is lost.
import assert from 'node:assert/strict'

/** Has the page ask: it says what is lost; "not now" and Escape send nothing; yes does it. */
export async function asks(page, { open, title, lost, verb }) {
  const sent = []
  const note = (request) => { if (request.method() !== 'GET') sent.push(`${request.method()} ${request.url()}`) }
  const dialog = page.getByRole('alertdialog', { name: title })
  page.on('request', note)
  for (const no of [() => dialog.getByRole('button', { name: 'Not now' }).click(), () => page.keyboard.press('Escape')]) {
    await open()
    await dialog.getByText(lost).waitFor()
    await no()
    await dialog.waitFor({ state: 'hidden' })
  }
  page.off('request', note)
  assert.deepEqual(sent, [], `${title}: no was said, and this was sent`)
  await open()
  await dialog.getByRole('button', { name: verb, exact: true }).click()
  await dialog.waitFor({ state: 'hidden' })
}
