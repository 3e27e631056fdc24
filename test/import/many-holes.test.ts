// A recording full of holes costs as much more as it has more of them: every function of the import and of the lake's
// writer is called at most so many times as often when everything is doubled. Calls are counted by V8 itself.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { importLake } from './pieces/import-lake.ts'

const HOLES = 300
/** Doubling may add what sorting costs, never a square. */
const GROWTH_MAX = 2.6
/** Functions that are called less often than that tell nothing: a square of the holes is many times as much. */
const CALLS_MIN = HOLES * 16
const START_MS = Date.UTC(2026, 5, 24)
const DAYS = 3
const LAST_DATE = '2026-06-26'
const COUNTED = /\/dist\/(server\/(?:import|lake)\/.+)$/

/** The lines of some days with a hole after each fourth message, and now and then a snapshot. */
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

/** How often each function, and each branch and loop within one, ran since it was asked last. */
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

test('twice as many holes are a little more than twice the work at most', async (t) => {
  const directory = await temporaryDirectory(t)
  const session = new Session()
  session.connect()
  t.after(() => session.disconnect())
  await session.post('Profiler.enable')
  // Counters are compiled into a function when it runs for the first time: nothing is imported before.
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
