// Repeated kill -9: all records reported as synced are kept, and the folded files are the same as without kills.

import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { aliveMark } from '../../server/feed/wal-mark.ts'
import { WalReader } from '../../server/recorder/wal-reader.ts'
import { WAL_HEADER_BYTES, WAL_KIND } from '../../server/recorder/wal-record.ts'
import type { WalRecord } from '../../server/recorder/wal-record.ts'
import { WAL_MAGIC, listWalSegments } from '../../server/recorder/wal-segment.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { runImport } from '../support/import-harness.ts'
import { runs } from '../support/effort.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { TEST_PRIVATE_KEY, checkAgainst, readSeries } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const A = 'KXHIGHNY-26NOV20-B45.5'
const B = 'KXHIGHNY-26NOV20-T49'
const KILLS = runs(4, 100)
const FOLD_KILLS = runs(2, 12)

function child(name: string, args: readonly string[]): ChildProcess {
  return fork(new URL(`../support/${name}.js`, import.meta.url), args, {
    env: { ...process.env, CHILD_KEY: TEST_PRIVATE_KEY },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

async function kill(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const exited = once(process, 'exit')
  process.kill('SIGKILL')
  await exited
}

interface Kept {
  readonly segment: number
  readonly record: WalRecord
}

async function readLog(work: string): Promise<{ kept: Kept[]; end: WalPosition }> {
  const directory = join(work, 'wal', 'kalshi')
  const segments = await listWalSegments(directory)
  const end = { segment: segments.at(-1)!.number, offset: Number.MAX_SAFE_INTEGER }
  const reader = new WalReader(directory, { segment: segments[0]!.number, offset: 0 })
  const kept: Kept[] = []
  for (let piece = await reader.next(end); piece !== undefined; piece = await reader.next(end)) {
    const { segment } = piece
    for (const record of piece.records) {
      kept.push({ segment, record: { ...record, payload: Buffer.from(record.payload) } })
    }
  }
  const last = reader.position
  await reader.close()
  return { kept, end: last }
}

test('a recorder that is killed repeatedly loses no synced message', async (t) => {
  const root = await temporaryDirectory(t)
  const exchange = await LocalKalshi.start(t)
  exchange.setBook(A, [[0, 40, 1000]])
  exchange.setBook(B, [[1, 3, 100]])
  let turn = 0
  const trading = setInterval(() => {
    for (let count = 0; count < 5; count++)
      exchange.change(turn % 2 ? A : B, turn % 2, 30 + (turn++ % 30), 100)
  }, 1)
  t.after(() => clearInterval(trading))
  const synced: WalPosition[] = []
  for (let round = 0; round < KILLS; round++) {
    const recorder = child('recorder-child', [exchange.socketUrl, root, A, B])
    // Some rounds end before anything is synced, others last longer.
    const enough = round % 5
    let reports = 0
    let position: WalPosition | undefined
    await new Promise<void>((resolve) => {
      recorder.on('message', (message: WalPosition) => {
        // This segment has no record yet.
        if (message.offset <= WAL_MAGIC.length) return
        position = message
        if (++reports >= enough) resolve()
      })
      if (enough === 0) void exchange.until(() => exchange.isFollowed(A)).then(resolve)
    })
    await kill(recorder)
    if (position !== undefined) synced.push(position)
  }
  clearInterval(trading)
  const work = join(root, 'work')
  const { kept, end } = await readLog(work)
  for (const { segment, offset } of synced) {
    const records = kept.filter((one) => one.segment === segment && one.record.kind !== WAL_KIND.lost)
    const last = records.at(-1)!.record
    assert.ok(
      last.offset + WAL_HEADER_BYTES + last.payload.length >= offset,
      `segment ${segment} is whole up to ${offset}`,
    )
  }
  // Within a connection no message is missing: its sequence numbers are consecutive.
  const seqByConnection = new Map<number, number>()
  let frames = 0
  for (const { record } of kept) {
    if (record.kind !== WAL_KIND.frame) continue
    frames++
    const { seq } = JSON.parse(record.payload.toString('utf8')) as { seq?: number }
    if (seq === undefined) continue
    const before = seqByConnection.get(record.begunMs)
    if (before !== undefined) assert.equal(seq, before + 1)
    seqByConnection.set(record.begunMs, seq)
  }
  assert.ok(synced.length >= KILLS / 2 && frames > KILLS, `${synced.length} rounds with ${frames} messages`)
  const fold = await LiveFold.open({
    lake: join(root, 'lake'),
    source: 'kalshi',
    workDirectory: work,
  })
  while (await fold.advance(end)) {
    // Read all records.
  }
  await fold.publish()
  await fold.close()
  const { known, unknown } = checkAgainst(
    exchange,
    await readSeries(join(root, 'lake'), 'kalshi', 'KXHIGHNY'),
  )
  assert.ok(known > 0)
  assert.equal(unknown, 0)
})

/** Three hours around midnight, with more than one slice in each. */
function script(): ScriptRecord[] {
  const startMs = Date.parse('2026-06-24T22:40:00Z')
  const records: ScriptRecord[] = [
    { ms: startMs, frame: snapshot(1, { yes_dollars_fp: [['0.4000', '10.00']] }) },
  ]
  for (let step = 1; step <= 1500; step++) {
    const ms = startMs + step * 6000
    const level = { price_dollars: `0.4${step % 10}00`, delta_fp: '1.00', ts_ms: ms }
    records.push({ ms, frame: delta(step + 1, level) }, { kind: WAL_KIND.mark, ms, frame: aliveMark(ms) })
    records.push({ kind: WAL_KIND.clock, ms })
  }
  return records
}

/** Writes messages of another recorder to the lake. */
async function writeOthers(lake: string): Promise<void> {
  const startMs = Date.parse('2026-06-24T20:40:00Z')
  const frames = Array.from({ length: 900 }, (_, step) =>
    step === 0
      ? snapshot(1, { yes_dollars_fp: [['0.4000', '10.00']] })
      : delta(step + 1, { price_dollars: `0.4${step % 10}00`, ts_ms: startMs + step * 6000 }),
  )
  const lines = frames.map((data, step) =>
    JSON.stringify({ recv_ts: `${startMs + step * 6000}000000`, data }),
  )
  await runImport(lake, 'kalshi', { lines }, { bounds: { groupRows: 100 } })
}

for (const hasOthers of [false, true]) {
  const what = hasOthers ? "that goes on from another recorder's file" : 'of a log'
  test(`a fold ${what} that is killed at any time and run again gives the same bytes`, async (t) => {
    await killAgainAndAgain(t, hasOthers)
  })
}

async function killAgainAndAgain(t: TestContext, hasOthers: boolean): Promise<void> {
  const root = await temporaryDirectory(t)
  const limit = await writeWal(join(root, 'work'), 'kalshi', script())
  const paths = ['2026-06-24', '2026-06-25'].map((date) =>
    lobFilePath(join(root, 'lake'), 'kalshi', 'KXHIGHNY', date),
  )
  const args = [String(limit.segment), String(limit.offset)]
  const whole = await temporaryDirectory(t)
  const limitOfWhole = await writeWal(join(whole, 'work'), 'kalshi', script())
  assert.deepEqual(limitOfWhole, limit)
  if (hasOthers) for (const place of [root, whole]) await writeOthers(join(place, 'lake'))
  const [code] = (await once(child('live-fold-child', [whole, ...args]), 'exit')) as [number]
  assert.equal(code, 0)
  let kills = 0
  for (let round = 0; round < FOLD_KILLS; round++) {
    const process = child('live-fold-child', [root, ...args])
    const exited = once(process, 'exit')
    await Promise.race([once(process, 'message'), exited])
    await new Promise((resolve) => {
      setTimeout(resolve, round * 15)
    })
    await kill(process)
    await exited
    if (process.signalCode === 'SIGKILL') kills++
  }
  assert.ok(kills > 0)
  const [last] = (await once(child('live-fold-child', [root, ...args]), 'exit')) as [number]
  assert.equal(last, 0)
  for (const path of paths) {
    assert.ok((await readFile(path)).equals(await readFile(path.replace(root, whole))), path)
  }
}
