import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runImportBench } from '../../bench/import.bench.ts'
import { inFullGear } from '../support/effort.ts'

test(
  'the import benchmark gets the same bytes from one import and from two',
  { skip: inFullGear },
  async () => {
    const { figures, hashes } = await runImportBench('smoke')
    const value = (name: string): number | undefined => figures.find((figure) => figure.name === name)?.value
    assert.equal(value('messages'), 2000)
    for (const name of ['without holes', 'with 50 holes']) {
      assert.ok(value(`peak memory, ${name}`)! > 0)
      assert.equal(hashes[`two imports, ${name}`], hashes[`one import, ${name}`])
    }
    assert.notEqual(hashes['one import, without holes'], hashes['one import, with 50 holes'])
  },
)
