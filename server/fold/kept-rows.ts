// Keeps the rows of an order-book file without raw segments (a file of version 0.1) as raw lines, so that the date can be folded
// together with what is recorded from then on.

import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { parquetReadObjects, type FileMetaData } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { messageOf } from '../../shared/error-message.ts'
import { lobFilePath, rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { EVENT_CLEAR, EVENT_SET, LOB_FOOTER_KEYS as KEYS } from '../../shared/lob-v1.ts'
import { MS_PER_HOUR, NS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { digestOf } from '../lake/file-list.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { readBytes, readLobFooter } from '../lake/lob-file-reading.ts'
import { seriesDates } from '../lake/series-dates.ts'
import { rawDates, segmentsOnDisk } from '../raw/date-manifest.ts'
import { eventText, rowText, seriesText } from '../raw/segment-lines.ts'
import type { KeptRow } from '../raw/segment-lines.ts'
import { SegmentWriter } from '../raw/segment-writer.ts'

/** After this time without a row, an `alive` line states that the recording continued. */
const ALIVE_NS = 30_000_000_000n

export interface KeptFile {
  readonly lake: string
  readonly source: LobSource
  readonly series: string
  readonly path: string
}

export interface OldFiles {
  readonly lake: string
  readonly source: LobSource
  readonly date: string
  readonly onWarning?: ((text: string) => void) | undefined
}

interface TimedRow extends KeptRow {
  readonly ts: bigint
}

/** The rows of a UTC hour, since the epoch. */
interface RowsOfHour {
  readonly hour: number
  readonly rows: readonly TimedRow[]
}

/** The beginning of the recorder name of kept rows. */
const KEPT = 'kept'

/** Whether a segment has the rows of a file. */
export function isKeptSegment(name: string): boolean {
  return rawSegmentOfName(name)?.recorder.startsWith(KEPT) === true
}

/** The recorder name for the rows of one file. It has a digest of the file's bytes, so two files never share it. */
async function keptName(file: FileHandle): Promise<string> {
  return `${KEPT}${(await digestOf(file, (await file.stat()).size)).slice(0, 16)}`
}

/** Whether a file is of version 0.1, is no sample, and `segments` lack its rows. The rows of its last hour are kept last. */
export async function isUnkept(path: string, segments: readonly string[]): Promise<boolean> {
  const { isOld, isSample, maxTs } = (existsSync(path) ? await lakeFileFacts(path) : undefined) ?? {}
  if (isOld !== true || isSample === true || typeof maxTs !== 'bigint') return false
  const file = await open(path)
  const kept = await keptName(file).finally(() => file.close())
  const hour = Number(maxTs / NS_PER_HOUR) % 24
  return !segments.map(rawSegmentOfName).some((name) => name?.recorder === kept && name.hour === hour)
}

/**
 * Keeps the rows of the files of a date that were not derived from raw segments, except samples. Returns whether there are any. A
 * killed attempt is repeated and writes the same segments.
 * @throws {Error} that names a file that cannot be read
 */
export async function keepOldFiles(old: OldFiles): Promise<boolean> {
  const { lake, source, date, onWarning } = old
  // If it has, its files of later versions are derived from raw segments, even those that a push has just pulled.
  const hasRaw = await hasRecording(lake, source, date)
  let areKept = false
  for await (const { source: of, series, dates } of seriesDates(lake)) {
    if (of !== source || !dates.includes(date)) continue
    const path = lobFilePath(lake, source, series, date)
    if (!existsSync(path)) continue
    const facts = await lakeFileFacts(path)
    if (hasRaw && facts?.isOld !== true) continue
    if (facts?.isSample === true) {
      onWarning?.(`${path} was a sample: the recording replaces it`)
      continue
    }
    await keepRows({ lake, source, series, path })
    areKept = true
    onWarning?.(`The rows of ${path}, which had no raw segments, are kept as raw segments.`)
  }
  return areKept
}

/**
 * Writes the rows of `path` as raw segments, one for each UTC hour. Keyframes are left out, except those of midnight.
 * @throws {Error} that names the file if it cannot be read
 */
export async function keepRows(kept: KeptFile): Promise<void> {
  const file = await open(kept.path)
  try {
    const recorder = await keptName(file)
    const { size } = await file.stat()
    const { metadata, values } = await readLobFooter(file, size)
    const coversTo = BigInt(values.get(KEYS.coversTo) ?? 0)
    const connection = `${recorder}/0/${kept.series}/0`
    let n = 0
    let lastTs: bigint | undefined
    // The book was known in between. Without these lines, the recorder would count as one that stood still.
    const live = (writer: SegmentWriter, until: bigint): void => {
      for (lastTs ??= until; until - lastTs > ALIVE_NS;)
        writer.add(eventText((lastTs += ALIVE_NS), 'alive', { connection, n: n++ }), lastTs)
      lastTs = until
    }
    for await (const { hour, rows } of hoursOf(file, size, metadata)) {
      const isLast = hour === Number(coversTo / NS_PER_HOUR)
      const place = { date: utcDateOf(hour * MS_PER_HOUR), hour: hour % 24, recorder }
      await SegmentWriter.write(kept.lake, { source: kept.source, recorder }, place, async (writer) => {
        const start = BigInt(hour) * NS_PER_HOUR
        writer.add(seriesText(start, new Map(rows.map(({ marketId }) => [marketId, kept.series]))), start)
        for (const row of rows) {
          live(writer, row.ts)
          writer.add(rowText(row.ts, row, { connection, n: n++ }), row.ts)
          if (writer.isFull) await writer.drained()
        }
        if (isLast) {
          live(writer, coversTo)
          writer.add(eventText(coversTo, 'alive', { connection, n: n++ }), coversTo)
          writer.add(eventText(coversTo, 'close', { connection, n: n++ }), coversTo)
        }
      })
    }
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(`Cannot keep the rows of ${kept.path}: ${reason}. Restore it, or move it away.`, {
      cause: error,
    })
  } finally {
    await file.close()
  }
}

/** The rows of each hour by time. Rows of one market keep their order. */
async function* hoursOf(
  file: FileHandle,
  sizeBytes: number,
  metadata: FileMetaData,
): AsyncGenerator<RowsOfHour> {
  let rows: TimedRow[] = []
  let start = 0
  for (const { num_rows: count } of metadata.row_groups) {
    const end = start + Number(count)
    const group = await rowsOf(file, sizeBytes, metadata, start, end)
    const isNext = rows.length > 0 && group[0]!.ts / NS_PER_HOUR !== rows[0]!.ts / NS_PER_HOUR
    if (isNext) yield inOrder(rows)
    rows = isNext ? group : [...rows, ...group]
    start = end
  }
  if (rows.length > 0) yield inOrder(rows)
}

function inOrder(rows: readonly TimedRow[]): RowsOfHour {
  const changes = rows
    .filter((row) => !isKeyframe(row))
    .toSorted((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0))
  return { hour: Number(rows[0]!.ts / NS_PER_HOUR), rows: changes }
}

function isKeyframe({ ts, seq, event }: TimedRow): boolean {
  const isOfBook = event === EVENT_CLEAR || event === EVENT_SET
  return isOfBook && seq === 0n && ts % NS_PER_HOUR === 0n && ts % (24n * NS_PER_HOUR) !== 0n
}

/** Rows `[rowStart, rowEnd)` of the file, a whole row group. */
async function rowsOf(
  file: FileHandle,
  sizeBytes: number,
  metadata: FileMetaData,
  rowStart: number,
  rowEnd: number,
): Promise<TimedRow[]> {
  const rows = await parquetReadObjects({
    file: {
      byteLength: sizeBytes,
      slice: async (start, end = sizeBytes) => new Uint8Array(await readBytes(file, start, end)).buffer,
    },
    metadata,
    rowStart,
    rowEnd,
    compressors,
  })
  return rows.map(({ market_id: marketId, recv_ts: recvTs, qty, ...row }) => ({
    ...(row as Omit<TimedRow, 'marketId' | 'recvTs' | 'qty'>),
    marketId: marketId as string,
    recvTs: recvTs as bigint,
    qty: Number(qty),
  }))
}

/** Dates that have at least one segment other than those of kept rows. */
export async function datesWithSegments(lake: string, source: LobSource): Promise<string[]> {
  const dates: string[] = []
  for (const date of await rawDates(lake, source))
    if (await hasRecording(lake, source, date)) dates.push(date)
  return dates
}

/** Whether a date has segments other than those of kept rows. */
async function hasRecording(lake: string, source: LobSource, date: string): Promise<boolean> {
  return !(await segmentsOnDisk(lake, source, date)).every(isKeptSegment)
}
