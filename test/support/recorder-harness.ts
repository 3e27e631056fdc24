// A recorder of a local exchange in this process, and common queries of its files.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { KalshiLane } from '../../server/exchanges/kalshi/lane.ts'
import { kalshiCredentials } from '../../server/exchanges/kalshi/signature.ts'
import type { DirectoryMarket } from '../../server/feed/market-directory.ts'
import { SourceRecorder } from '../../server/recorder/source-recorder.ts'
import type { SourceRecorderOptions } from '../../server/recorder/source-recorder.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import type { LocalKalshi } from './local-kalshi.ts'
import { applyNaively, bookText, readRows } from './lob-rows.ts'
import type { LobRow, NaiveBook } from './lob-rows.ts'
import { endAfter } from './temporary-lake.ts'

let markers = 0
const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const TEST_KEY_ID = 'a952bcbe-ec3b-4b5b-b8f9-11dae589608c'
export const TEST_PRIVATE_KEY = pair.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
export const TEST_PUBLIC_KEY = pair.publicKey
export const TEST_CREDENTIALS = kalshiCredentials(TEST_KEY_ID, TEST_PRIVATE_KEY)

/** Short waits; the tests do not depend on them. */
export const QUICK = { pingMs: 100, backOff: { firstMs: 5, maxMs: 40 }, repairMs: 20 } as const

export class LogLines {
  readonly lines: string[] = []
  info(context: object, text: string): void {
    this.lines.push(`${text} ${JSON.stringify(context)}`)
  }
  warn(context: object, text: string): void {
    this.lines.push(`${text} ${JSON.stringify(context)}`)
  }
  error(context: object, text: string): void {
    this.lines.push(`${text} ${JSON.stringify(context)}`)
  }
}

export interface KalshiHarness {
  readonly recorder: SourceRecorder
  readonly lake: string
  readonly workDirectory: string
  readonly log: LogLines
  /** Sends a meaningless message and waits until it, and so everything before it, is folded. */
  readonly settle: () => Promise<void>
  /** Sets the markets that the directory lists from its next look on. */
  follow(tickers: readonly string[]): void
}

/** Records the exchange into `root`; stopped at the latest after the test. */
export async function recordKalshi(
  t: TestContext,
  exchange: LocalKalshi,
  root: string,
  tickers: readonly string[],
  options: Partial<SourceRecorderOptions> & { readonly timing?: object } = {},
): Promise<KalshiHarness> {
  const [lake, workDirectory] = [join(root, 'lake'), join(root, 'work')]
  const log = new LogLines()
  let markets: readonly DirectoryMarket[] = []
  const follow = (ids: readonly string[]): void => {
    markets = ids.map((id) => ({ id, marketId: id, series: id.slice(0, id.indexOf('-')) }))
  }
  follow(tickers)
  const { timing, ...rest } = options
  let lastMarker = ''
  const recorder = await SourceRecorder.start({
    source: 'kalshi',
    lake,
    workDirectory,
    directory: { list: async () => markets },
    lanesMax: 1,
    marketsPerLaneMax: 1000,
    makeLane: (laneLog) =>
      new KalshiLane({
        url: exchange.socketUrl,
        credentials: TEST_CREDENTIALS,
        log: {
          ...laneLog,
          frame: (data) => {
            laneLog.frame(data)
            // Requested snapshots may still come after it.
            if (data.length < 100 && data.includes('marker')) lastMarker = data.toString('utf8')
          },
        },
        timing: { ...QUICK, ...timing },
      }),
    logger: log,
    onFailed: (error) => assert.fail(error),
    publishIntervalMs: 100,
    discoveryIntervalMs: 20,
    clockMs: 20,
    ...rest,
  })
  endAfter(t, () => recorder.stop())
  const settle = async (): Promise<void> => {
    const marker = JSON.stringify({ type: 'marker', msg: { number: markers++ } })
    exchange.say(marker)
    await eventually(() => lastMarker === marker, 'the marker has come')
    const end = await endOnDisk(recorder)
    await eventually(() => {
      const { segment, offset } = recorder.metrics.fold?.position ?? { segment: 0, offset: 0 }
      return segment > end.segment || (segment === end.segment && offset >= end.offset)
    }, 'everything is folded')
  }
  return { recorder, lake, workDirectory, log, settle, follow }
}

/** The end of the log once everything received so far is on disk. */
async function endOnDisk(recorder: SourceRecorder): Promise<WalPosition> {
  let [{ syncedRecords }, commits] = [recorder.metrics, 0]
  await eventually(() => {
    const { syncedRecords: synced, queuedBytes } = recorder.metrics
    if (synced !== syncedRecords) commits++
    syncedRecords = synced
    // The first commit may have been running before.
    return queuedBytes === 0 || commits >= 2
  }, 'everything is on disk')
  return recorder.metrics.logPosition
}

/** Polls for a state; gives up after a minute: a recorder that failed waits up to 20 s before it tries again. */
export async function eventually(isReached: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + 60_000
  for (;;) {
    const beginMs = performance.now()
    if (await isReached()) return
    const endMs = performance.now()
    assert.ok(endMs < deadlineMs, `not reached: ${what}`)
    // Polling that reads whole files takes at most a tenth of the time: the awaited work needs the rest.
    await delay(Math.max(5, 9 * (endMs - beginMs)))
  }
}

/** The rows of every date of a series, by ascending date. */
export async function readSeries(lake: string, source: string, series: string): Promise<LobRow[]> {
  const directory = join(lake, 'lob', `source=${source}`, `series=${series}`)
  const names = (await readdir(directory)).filter((name) => name.startsWith('date=')).toSorted()
  const files: LobRow[][] = []
  for (const name of names) files.push(await readRows(join(directory, name, 'lob.parquet')))
  return files.flat()
}

/**
 * Replays the rows and compares the book after every change with the true book. Returns the number of changes with a known book,
 * the gaps, and the books at the end. Ignores the gap at the end of every recording.
 */
export function checkAgainst(exchange: LocalKalshi, rows: readonly LobRow[]) {
  const books = new Map<string, NaiveBook>()
  const ends = new Map(rows.map((row) => [row.market_id, row]))
  let [known, unknown, gaps] = [0, 0, 0]
  for (const row of rows) {
    if (row.event === 3 && ends.get(row.market_id) === row) continue
    const book = applyNaively(books.get(row.market_id), row.event, row.side, row.price, row.qty)
    books.set(row.market_id, book)
    if (row.event === 3) gaps++
    if (row.event !== 2) continue
    const change = exchange.changes.get(row.seq)
    assert.ok(change !== undefined, `a change with the number ${row.seq} was sent`)
    if (book === undefined) unknown++
    else {
      assert.equal(bookText(book), change.book, `${row.market_id} after number ${row.seq}`)
      known++
    }
  }
  return { known, unknown, gaps, books }
}
