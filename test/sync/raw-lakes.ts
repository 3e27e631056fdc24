// Lakes with raw segments for synchronization tests: collectors without sockets that write segments and fold them.

import { cp, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DateRule } from '../../server/fold/fold-order.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { framesText, eventText } from '../../server/raw/segment-lines.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import type { SegmentFacts } from '../../server/raw/segment-writer.ts'
import { RawFolder } from '../../server/fold/raw-folder.ts'
import { type ObjectStore, readTail } from '../../server/sync/object-store.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow } from '../support/temporary-lake.ts'

export const SOURCE = 'kalshi'

const SIGNAL = new AbortController().signal

/** Folds dates in this thread. */
export async function foldHere(
  lake: string,
  dates: readonly string[],
  rules?: ReadonlyMap<string, DateRule>,
): Promise<void> {
  await foldRawDates({ lake, source: SOURCE, dates, rules }, {}, SIGNAL)
}

/** A folder without a thread and without a limit on its share of the time. */
export function folderOf(lake: string, onFold?: () => void): RawFolder {
  return new RawFolder(lake, {
    shareMax: 1,
    async folding(order, listeners, signal) {
      onFold?.()
      return await foldRawDates(order, listeners, signal)
    },
  })
}

export interface SegmentPlan {
  readonly recorder: string
  readonly date: string
  readonly hour: number
  /** Minutes of the hour; the first minute has a snapshot. */
  readonly fromMinute: number
  readonly toMinute: number
  readonly market?: string
  /** The connection's name, which a recorder's slices and their merged segment share. */
  readonly connection?: string
  /** Number of the connection's first line in the segment. */
  readonly firstLine?: number
}

/** Writes a segment of one market with one change a minute. */
export async function writeSegment(lake: string, plan: SegmentPlan): Promise<SegmentFacts> {
  const { recorder, date, hour, fromMinute, toMinute, market = 'KXHIGHNY-26JUN24-T82' } = plan
  const isImport = recorder === 'import'
  const header = isImport
    ? { source: SOURCE, reading: { sequence: 'strict', useYesPrice: false } }
    : { source: SOURCE, recorder }
  const writer = await SegmentWriter.open(lake, header as Parameters<typeof SegmentWriter.open>[1])
  const connection = plan.connection ?? `${recorder}/1/0/${hour}`
  let n = plan.firstLine ?? 0
  const place = () => ({ connection, n: n++ })
  const startMs = Date.parse(`${date}T00:00:00Z`) + hour * 3_600_000
  for (let minute = fromMinute; minute < toMinute; minute++) {
    const ms = startMs + minute * 60_000
    const recvTs = BigInt(ms) * 1_000_000n
    const isFirst = isImport ? minute === fromMinute : n === 0
    if (isFirst && !isImport) writer.add(eventText(recvTs, 'open', place()), recvTs)
    const frame = isFirst
      ? snapshot(1, { market_ticker: market, yes_dollars_fp: [['0.4500', '90.00']] })
      : delta(minute - (isImport ? fromMinute : 0) + 1, { market_ticker: market, ts_ms: ms })
    writer.add(framesText(recvTs, JSON.stringify(frame), false, isImport ? undefined : place()), recvTs)
  }
  return await writer.finish({ date, hour, recorder })
}

/** Acts like a recorder at the end of an hour: writes the merged segment, then removes the slices. */
export async function unite(
  lake: string,
  plan: SegmentPlan,
  slices: readonly SegmentFacts[],
): Promise<SegmentFacts> {
  const united = await writeSegment(lake, plan)
  for (const { path } of slices) if (path !== united.path) await rm(path, { force: true })
  return united
}

/** Raw segments, manifests, fold states and parquet files below a directory, without hidden ones. */
export async function readWhole(root: string): Promise<Record<string, string>> {
  const tree: Record<string, string> = {}
  for (const key of (await entriesBelow(root)).toSorted()) {
    if (key.split('/').some((part) => part.startsWith('.'))) continue
    if (/\.(?:parquet|ndjson\.gz|json|json\.gz)$/.test(key))
      tree[key] = (await readFile(join(root, key))).toString('base64')
  }
  return tree
}

/** The same for a bucket. */
export async function readBucket(store: ObjectStore): Promise<Record<string, string>> {
  const tree: Record<string, string> = {}
  for await (const { key } of store.list(undefined, { raw: true })) {
    const object = (await store.head(key))!
    tree[key] = (await readTail(store, object, undefined)(0)).toString('base64')
  }
  return Object.fromEntries(Object.entries(tree).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** The result of a fold of all segments of a lake in an empty lake. */
export async function foldedAnew(
  lake: string,
  into: string,
  dates: readonly string[],
): Promise<Record<string, string>> {
  for (const date of dates) {
    for (const name of await segmentsOnDisk(lake, SOURCE, date)) {
      await mkdir(rawDateDirectory(into, SOURCE, date), { recursive: true })
      await cp(
        join(rawDateDirectory(lake, SOURCE, date), name),
        join(rawDateDirectory(into, SOURCE, date), name),
      )
    }
  }
  await foldHere(into, dates)
  return await readWhole(into)
}
