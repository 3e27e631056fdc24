// The files of a write-ahead log: one directory for each source, segments numbered without holes. A segment's name also
// shows the UTC hour in which it was begun, for people.

import { mkdirSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { NS_PER_MS } from '../../shared/utc-date.ts'

export const WAL_MAGIC = Buffer.from('BCWAL01\n')
const NAME = /^(\d{10})-\d{10}\.wal$/

/** A place in the log: before the byte `offset` of a segment. */
export interface WalPosition {
  readonly segment: number
  readonly offset: number
}

export interface WalSegment {
  readonly number: number
  readonly path: string
}

export function walSegmentName(number: number, recvTs: bigint): string {
  const hour = new Date(Number(recvTs / NS_PER_MS)).toISOString().slice(0, 13).replaceAll(/\D/g, '')
  return `${String(number).padStart(10, '0')}-${hour}.wal`
}

/** The segments of a directory in order; creates it when there is none. */
export async function listWalSegments(directory: string): Promise<WalSegment[]> {
  mkdirSync(directory, { recursive: true })
  const segments: WalSegment[] = []
  for (const name of await readdir(directory)) {
    const number = NAME.exec(name)?.[1]
    if (number !== undefined) segments.push({ number: Number(number), path: join(directory, name) })
  }
  return segments.toSorted((a, b) => a.number - b.number)
}

/** The end of the log on disk; undefined if there is none. */
export async function endOfLog(segments: readonly WalSegment[]): Promise<WalPosition | undefined> {
  const last = segments.at(-1)
  return last === undefined ? undefined : { segment: last.number, offset: (await stat(last.path)).size }
}

/**
 * Where reading continues: at `saved`, the checkpoint's position, or at the beginning of a log that was removed and started again:
 * the new log would reach that position only after many hours.
 */
export function placeInLog(
  saved: WalPosition,
  segments: readonly WalSegment[],
  onWarning: ((text: string) => void) | undefined,
): WalPosition {
  if (saved.segment <= (segments.at(-1)?.number ?? 0)) return saved
  onWarning?.(
    `the log ends before segment ${saved.segment}, the checkpoint's position; the recorder reads it from its beginning`,
  )
  return { segment: segments[0]?.number ?? 1, offset: 0 }
}
