// The real recording (not part of the project) cut at every hour and at random places, imported in random order: the files
// are those of one import. `PIECES_RUNS` sets the number of random cuts, of at most 200 places each.

import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { realDataPath } from '../../support/real-data.ts'
import { seedsOf, workDirectory } from './case-runs.ts'
import { importLake } from './import-lake.ts'
import { lakeHashes } from './lake-reader.ts'
import { SeededRandom } from './seeded-random.ts'

const LAST_DATE = '2023-08-31'
const PLACES = 200
const IMPORTS_MAX = 10
const HOUR_MS = 3_600_000

interface RecordedFrame {
  readonly msg: { readonly ts_ms: number }
}

/** Indexes of lines at which a new file begins. */
function hourPlaces(lines: readonly string[]): number[] {
  const hourOf = (line: string): number => {
    const frame: RecordedFrame = JSON.parse(line)
    return Math.floor(frame.msg.ts_ms / HOUR_MS)
  }
  return [...lines.keys()].slice(1).filter((index) => hourOf(lines[index]!) !== hourOf(lines[index - 1]!))
}

async function writeCut(
  directory: string,
  lines: readonly string[],
  places: readonly number[],
): Promise<string[]> {
  const bounds = [0, ...new Set(places), lines.length].toSorted((a, b) => a - b)
  const paths: string[] = []
  for (const [index, from] of bounds.slice(0, -1).entries()) {
    const piece = lines.slice(from, bounds[index + 1])
    if (piece.length === 0) continue
    const path = join(directory, `piece-${(index * 7919) % 10_007}.ndjson`)
    await writeFile(path, piece.map((line) => `${line}\n`).join(''))
    paths.push(path)
  }
  return paths
}

test('the real Kalshi recording in pieces gives the files of one import', async (t) => {
  const path = realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz')
  if (path === undefined) {
    t.skip('real recordings not present')
    return
  }
  const directory = await workDirectory(t)
  const lines = gunzipSync(await readFile(path))
    .toString()
    .trim()
    .split('\n')
  await importLake('kalshi', join(directory, 'whole'), [path], LAST_DATE)
  const expected = await lakeHashes(join(directory, 'whole'))
  assert.equal(expected.size, 1)
  const cuts: { name: string; places: readonly number[]; random: SeededRandom }[] = [
    { name: 'hours', places: hourPlaces(lines), random: new SeededRandom(0) },
  ]
  for (const seed of seedsOf(1, 2)) {
    const random = new SeededRandom(seed)
    const places = Array.from({ length: PLACES }, () => random.int(1, lines.length - 1))
    cuts.push({ name: `seed ${seed}`, places, random })
  }
  for (const { name, places, random } of cuts) {
    const pieces = join(directory, 'pieces')
    await mkdir(pieces, { recursive: true })
    const paths = random.shuffled(await writeCut(pieces, lines, places))
    for (const count of [1, Math.min(paths.length, IMPORTS_MAX)]) {
      await t.test(`${name}: ${paths.length} files in ${count} imports`, async () => {
        const lake = join(directory, `${name} ${count}`)
        for (let index = 0; index < count; index++) {
          const files = paths.filter((_, place) => place % count === index)
          await importLake('kalshi', lake, files, LAST_DATE)
        }
        assert.deepEqual(await lakeHashes(lake), expected)
      })
    }
  }
})
