// Recordings written by a test, and their raw segments.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { segmentRecordings } from '../../server/import/segmenting.ts'
import type { SegmentedRecordings, SegmentingOptions } from '../../server/import/segmenting.ts'
import { verifySegment } from '../../server/raw/segment-reader.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { temporaryDirectory } from './temporary-lake.ts'

const DAY = Date.parse('2026-07-01T00:00:00Z')
export const at = (time: string): number => DAY + Date.parse(`1970-01-01T${time}Z`)
export const ns = (ms: number): string => `${ms}000000`

let delta = 0
/** A change at a time on 2026-07-01; its number increases with each call. */
export function kalshiDelta(time: string, fields: object = {}): string {
  const msg = {
    market_ticker: 'KXHIGHNY-26JUL01-B80.5',
    price_dollars: '0.1000',
    delta_fp: '7.00',
    side: 'yes',
  }
  return JSON.stringify({
    type: 'orderbook_delta',
    sid: 1,
    seq: ++delta,
    msg: { ...msg, ts_ms: at(time), ...fields },
  })
}

/** The same, wrapped with its receive time. */
export const kalshiLine = (time: string): string => `{"recv_ts":${at(time) + 40},"msg":${kalshiDelta(time)}}`

export function polymarketChange(time: string): string {
  const change = { asset_id: '7', price: '0.5', size: '200', side: 'BUY' }
  return JSON.stringify({
    event_type: 'price_change',
    market: '0x1',
    timestamp: String(at(time)),
    price_changes: [change],
  })
}

/** A book whose last change was at a time on 2026-07-01. */
export const polymarketBook = (changed: string, asset = '7'): string =>
  JSON.stringify({ market: '0x1', asset_id: asset, timestamp: String(at(changed)), bids: [], asks: [] })

/** A test's recordings, and the lake for their import. */
export class Recordings {
  readonly directory: string
  readonly lake: string
  #count = 0

  constructor(directory: string) {
    this.directory = directory
    this.lake = join(directory, 'lake')
  }

  async file(lines: readonly string[], name = `${this.#count++}.ndjson`): Promise<string> {
    const path = join(this.directory, name)
    await mkdir(dirname(path), { recursive: true })
    const text = lines.map((line) => `${line}\n`).join('')
    await writeFile(path, name.endsWith('.gz') ? gzipSync(text) : text)
    return path
  }

  async segment(
    source: LobSource,
    paths: readonly string[],
    options: Partial<SegmentingOptions> = {},
  ): Promise<SegmentedRecordings> {
    return await segmentRecordings({
      source,
      lake: this.lake,
      paths,
      stdin: Readable.from([]),
      skipBad: false,
      useYesPrice: false,
      signal: new AbortController().signal,
      ...options,
    })
  }

  /** Imports the lines as one file. */
  async import(
    source: LobSource,
    lines: readonly string[],
    options: Partial<SegmentingOptions> = {},
  ): Promise<SegmentedRecordings> {
    const segmented = await this.segment(source, [await this.file(lines)], options)
    await segmented.publish()
    return segmented
  }
}

export async function recordings(t: TestContext): Promise<Recordings> {
  return new Recordings(await temporaryDirectory(t))
}

/** The segments of a lake by date and hour (`2026-07-01 10`), in order, with the lines after their headers. */
export async function segmentsOf(
  lake: string,
): Promise<[place: string, header: Record<string, unknown>, lines: string[]][]> {
  const found: [string, Record<string, unknown>, string[]][] = []
  for (const path of await segmentPaths(lake)) {
    await verifySegment(path)
    const [header = '', ...lines] = gunzipSync(await readFile(path))
      .toString('utf8')
      .trimEnd()
      .split('\n')
    const [, date, hour] = /date=([\d-]+)\/[a-z0-9]+-(\d\d)-/.exec(path)!
    found.push([`${date} ${hour}`, JSON.parse(header) as Record<string, unknown>, lines])
  }
  return found.toSorted(([a], [b]) => (a < b ? -1 : 1))
}

export async function onlySegment(lake: string): Promise<[string, Record<string, unknown>, string[]]> {
  const found = await segmentsOf(lake)
  assert.equal(found.length, 1)
  return found[0]!
}

/** The files below the lake's raw folder, including temporary ones. */
export async function segmentPaths(lake: string): Promise<string[]> {
  if (!existsSync(join(lake, 'raw'))) return []
  const entries = await readdir(join(lake, 'raw'), { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
}

/** All lines of all segments. */
export async function allText(lake: string): Promise<string> {
  const texts = await Promise.all(
    (await segmentPaths(lake)).map(async (path) => gunzipSync(await readFile(path))),
  )
  return texts.join('')
}
