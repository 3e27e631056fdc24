import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCatalogue } from '../../bench/catalogue.ts'
import { inFullGear } from '../support/effort.ts'

test('the catalogue benchmark asks three servers for the same bytes', { skip: inFullGear }, async () => {
  const { figures, hashes } = await runCatalogue('smoke')
  assert.ok(figures.slice(0, 3).every((figure) => figure.value > 0))
  // The bytes of the answer change only with the interface.
  assert.equal(hashes['body']?.slice(0, 16), 'f4e67d7bb6c0f2c6')
})
