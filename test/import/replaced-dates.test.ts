// A date that was replaced (`--replace`): its earlier messages no longer prove anything, neither for the replacement nor for
// messages added later.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { runImport } from '../support/import-harness.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { readLake } from './pieces/lake-reader.ts'

const MINUTE = 60_000
/** Minutes after the start of the connection; midnight is 490 minutes and 5 seconds after it. */
const at = (minutes: number): bigint => BigInt(MS + minutes * MINUTE) * 1_000_000n

function line(seq: number, minutes: number): string {
  const frame = seq === 1 ? snapshot(1, { yes: [[40, 9]] }) : delta(seq, { ts_ms: MS + minutes * MINUTE })
  return `${JSON.stringify({ recv_ts: MS + minutes * MINUTE, msg: frame })}\n`
}

/** Messages 1 to 200, one every 3 minutes; the first of the next date is number 165. */
const LINES = Array.from({ length: 200 }, (_, index) => line(index + 1, index * 3))

async function importInto(
  lake: string,
  lines: readonly string[],
  { replace = false }: { replace?: boolean } = {},
) {
  const path = `${lake}.ndjson`
  await writeFile(path, lines.join(''))
  await runImport(lake, 'kalshi', { paths: [path] }, { replace })
}

test('removed messages of a replaced date do not extend a book', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  await importInto(lake, LINES.slice(0, 164))
  await importInto(lake, LINES.slice(0, 60), { replace: true })
  await importInto(lake, LINES.slice(164))
  const steps = (await readLake(lake)).steps.get(T)!
  for (const minutes of [30, 177]) assert.notEqual(textAt(steps, at(minutes)), UNKNOWN, `${minutes}`)
  for (const minutes of [178, 300, 480, 491, 515, 590])
    assert.equal(textAt(steps, at(minutes)), UNKNOWN, `${minutes}`)
})

test('messages that followed a replaced date do not continue its replacement', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  await importInto(lake, LINES)
  await importInto(lake, LINES.slice(0, 60), { replace: true })
  const steps = (await readLake(lake)).steps.get(T)!
  for (const minutes of [30, 177]) assert.notEqual(textAt(steps, at(minutes)), UNKNOWN, `${minutes}`)
  for (const minutes of [178, 300, 480, 491, 515, 590])
    assert.equal(textAt(steps, at(minutes)), UNKNOWN, `${minutes}`)
})

test('replaced messages that are imported again give the files of one import', async (t) => {
  const directory = await temporaryDirectory(t)
  const [lake, whole] = [join(directory, 'lake'), join(directory, 'whole')]
  await importInto(whole, LINES)
  await importInto(lake, LINES)
  await importInto(lake, LINES.slice(40, 90), { replace: true })
  await importInto(lake, LINES.slice(0, 164))
  const filesOf = async (root: string): Promise<string[]> =>
    (await entriesBelow(root)).filter((name) => name.endsWith('.parquet'))
  const files = await filesOf(whole)
  assert.deepEqual(await filesOf(lake), files)
  for (const name of files)
    assert.deepEqual(readFileSync(join(lake, name)), readFileSync(join(whole, name)), name)
})
