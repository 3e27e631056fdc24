// A fast recorder clock places a book after a full hour or midnight before which the next change happened, and the file is cut
// between the two.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runImport } from '../support/import-harness.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { type NaiveBook, applyNaively, bookText, readRows } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { lakeHashes } from './pieces/lake-reader.ts'

const AHEAD_MS = 62_000

for (const [name, borderMs] of [
  ['an hour', Date.UTC(2026, 5, 24, 12)],
  ['a date', Date.UTC(2026, 5, 25)],
] as const) {
  test(`a change that happened before ${name} ended follows its book into the next, however the files come`, async (t) => {
    const directory = await temporaryDirectory(t)
    const line = (atMs: number, frame: object): string =>
      `${JSON.stringify({ recv_ts: borderMs + atMs + AHEAD_MS, msg: frame })}\n`
    const change = (atMs: number, seq: number): string =>
      line(atMs, delta(seq, { ts_ms: borderMs + atMs - 20, delta_fp: `${seq}.00` }))
    // First an old book, to which changes can be compared; then one that is requested again.
    const first = line(-200_000, snapshot(1, { yes: [[40, 9]] })) + change(-190_000, 2)
    const anew = line(
      -42_000,
      snapshot(3, {
        yes: [
          [40, 9],
          [45, 2],
        ],
      }),
    )
    const after = change(-40_000, 4) + change(-30_000, 5) + change(90_000, 6)
    const paths = { whole: first + anew + after, head: first + anew, tail: after }
    for (const [file, text] of Object.entries(paths)) await writeFile(join(directory, file), text)
    /** The last known book; another change came 90 s after the hour or midnight. */
    const lastBook = async (lake: string, imports: readonly (readonly (keyof typeof paths)[])[]) => {
      for (const files of imports)
        await runImport(join(directory, lake), 'kalshi', {
          paths: files.map((file) => join(directory, file)),
        })
      let book: NaiveBook
      let last = ''
      for (const file of [...(await lakeHashes(join(directory, lake))).keys()].toSorted())
        for (const { event, side, price, qty } of await readRows(join(directory, lake, 'lob', file))) {
          book = applyNaively(book, event, side, price, qty)
          if (book !== undefined) last = bookText(book)
        }
      return last
    }
    const expected = await lastBook('lake-whole', [['whole']])
    assert.match(expected, /4500/)
    for (const [number, imports] of [
      [['head', 'tail']] as const,
      [['head'], ['tail']] as const,
      [['tail'], ['head']] as const,
      [['head'], ['tail'], ['head', 'tail']] as const,
    ].entries())
      assert.deepEqual(await lastBook(`lake-${number}`, imports), expected, `imports ${number}`)
  })
}

test('a date whose only book is placed after an hour is the same when a later date is imported separately', async (t) => {
  const directory = await temporaryDirectory(t)
  const hourMs = Date.UTC(2026, 5, 24, 22)
  const laterMs = hourMs + 3 * 3_600_000
  const line = (recvMs: number, frame: object): string =>
    `${JSON.stringify({ recv_ts: recvMs, msg: frame })}\n`
  const day =
    line(hourMs + 20_000, snapshot(1, { yes: [[40, 9]] })) +
    line(hourMs + 23_000, delta(2, { ts_ms: hourMs - 40_000 }))
  const next = line(laterMs, delta(3_062, { ts_ms: laterMs - 50 }, 7))
  const paths = [join(directory, 'day'), join(directory, 'next')]
  await Promise.all([day, next].map(async (text, index) => await writeFile(paths[index]!, text)))
  await runImport(join(directory, 'one'), 'kalshi', { paths })
  for (const path of paths) await runImport(join(directory, 'each'), 'kalshi', { paths: [path] })
  const [one, each] = [await lakeHashes(join(directory, 'one')), await lakeHashes(join(directory, 'each'))]
  assert.ok(one.size > 0)
  assert.deepEqual(each, one)
})
