// The cost of a recording grows linearly with its holes: when everything is doubled, the calls of every function of the import
// and of the lake's writer grow at most by a bounded factor. V8 counts the calls.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { importLake } from './pieces/import-lake.ts'

const HOLES = 300
/** Maximum growth when doubling: allows for sorting, but not for quadratic cost. */
const GROWTH_MAX = 2.6
/** Functions with fewer calls are ignored: a quadratic cost in the holes would be many times this. */
const CALLS_MIN = HOLES * 16
const START_MS = Date.UTC(2026, 5, 24)
const DAYS = 3
const LAST_DATE = '2026-06-26'
const COUNTED = /\/dist\/(server\/(?:import|lake)\/.+)$/

/** The lines of some days with a hole after every fourth message and occasional snapshots. */
function linesWithHoles(holes: number): string[] {
  const lines: string[] = []
  const messages = holes * 5
  for (let seq = 1; seq <= messages; seq++) {
    if (seq % 5 === 0) continue
    const ms = START_MS + Math.floor((seq * DAYS * 86_000_000) / messages)
    const frame = seq % 25 === 1 ? snapshot(seq, { yes: [[40, 9]] }) : delta(seq, { ts_ms: ms })
    lines.push(`{"recv_ts":${ms},"msg":${JSON.stringify(frame)}}\n`)
  }
  return lines
}

/** Imports the first half, then the second, which is merged with it. */
async function importHalves(directory: string, holes: number): Promise<void> {
  const lines = linesWithHoles(holes)
  const middle = lines.length / 2
  for (const [index, half] of [lines.slice(0, middle), lines.slice(middle)].entries()) {
    const path = join(directory, `${holes}-${index}.ndjson`)
    await writeFile(path, half.join(''))
    await importLake('kalshi', join(directory, String(holes)), [path], LAST_DATE)
  }
}

/** How often each function, branch and loop ran since the last call. */
async function callsOf(session: Session): Promise<Map<string, number>> {
  const calls = new Map<string, number>()
  for (const { url, functions } of (await session.post('Profiler.takePreciseCoverage')).result) {
    const file = COUNTED.exec(url)?.[1]
    if (file === undefined) continue
    for (const { functionName, ranges } of functions) {
      for (const { startOffset, count } of ranges) {
        calls.set(`${file} at ${startOffset}, in ${functionName || 'a function without name'}`, count)
      }
    }
  }
  return calls
}

test('twice as many holes cost at most a little more than twice the work', async (t) => {
  const directory = await temporaryDirectory(t)
  const session = new Session()
  session.connect()
  t.after(() => session.disconnect())
  await session.post('Profiler.enable')
  // Counters are compiled into a function at its first run, so nothing is imported before.
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  await importHalves(directory, HOLES)
  const once = await callsOf(session)
  await importHalves(directory, HOLES * 2)
  const twice = await callsOf(session)
  const steep = [...twice]
    .filter(([name, calls]) => calls > CALLS_MIN && calls > (once.get(name) ?? 0) * GROWTH_MAX)
    .map(([name, calls]) => `${name}: ${once.get(name) ?? 0} times, then ${calls}`)
  assert.deepEqual(steep, [])
  assert.ok(
    [...twice.values()].some((calls) => calls > CALLS_MIN),
    'nothing was counted',
  )
})
