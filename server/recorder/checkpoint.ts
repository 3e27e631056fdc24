// The fold's state between two hours, on disk. A restart after a crash continues from it, and the log before it is
// removed. A checkpoint that cannot be read is ignored: the raw segments have the closed hours, and the log has the open hour.

import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { crc32 } from 'node:zlib'
import type { OwnConnectionsState } from '../fold/own-connections.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { LiveClockState } from './live-clock.ts'
import type { LiveDateState } from './live-date.ts'
import type { LiveSeriesState } from './live-series.ts'
import type { WalPosition } from './wal-segment.ts'

export interface LiveFoldState extends LiveClockState {
  /** The first record that is not part of the state. */
  readonly position: WalPosition
  /** The open UTC hour since the epoch; undefined before the first record. */
  readonly hour: number | undefined
  readonly connections: OwnConnectionsState | undefined
  /** Lines so far of the connections of a log of 0.1. */
  readonly counts: readonly (readonly [string, number])[]
  readonly dates: readonly LiveDateState[]
  readonly series: readonly LiveSeriesState[]
  /** Market id → series, as the log states it. */
  readonly seriesByMarket: readonly (readonly [string, StatedSeries])[]
  /** Dates of which the state lacks messages that this recorder has received. */
  readonly partialDates: readonly string[]
}

/** A market's series and the hour in which the log last stated it. */
export interface StatedSeries {
  readonly series: string
  readonly hour: number
}

const MAGIC = Buffer.from('BCCHK04\n')
const HEADER_BYTES = MAGIC.length + 4

export function checkpointPath({
  workDirectory,
  source,
}: {
  readonly workDirectory: string
  readonly source: LobSource
}): string {
  return join(workDirectory, `${source}-latest.checkpoint`)
}

export async function writeCheckpoint(path: string, state: LiveFoldState): Promise<void> {
  const body = serialize(state)
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32LE(crc32(body))
  const temporary = `${path}.new`
  await writeFile(temporary, [MAGIC, checksum, body], { mode: 0o600, flush: true })
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

/** The state, or `undefined` when there is none or it is damaged. */
export async function readCheckpoint(path: string): Promise<LiveFoldState | undefined> {
  await rm(`${path}.new`, { force: true })
  const bytes = await readFile(path).catch(() => undefined)
  if (bytes === undefined || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const body = bytes.subarray(HEADER_BYTES)
  if (crc32(body) !== bytes.readUInt32LE(MAGIC.length)) return undefined
  try {
    return deserialize(body) as LiveFoldState
  } catch {
    return undefined
  }
}
