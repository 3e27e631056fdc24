// Writes a write-ahead log from a list of records, each synced before the next one.

import { join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import type { WalKind } from '../../server/recorder/wal-record.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { WriteAheadLog } from '../../server/recorder/write-ahead-log.ts'

/** By log: the number of lines of each connection so far, and the start of its recorder. */
const numbers = new Map<string, Map<string, number>>()
const starts = new Map<string, number>()

export interface ScriptRecord {
  readonly kind?: WalKind
  readonly lane?: number
  readonly begunMs?: number
  /** ms since the epoch. */
  readonly ms: number
  readonly frame?: unknown
}

/** Appends the records to the log of `source` below `work` and returns its end. */
export async function writeWal(
  work: string,
  source: LobSource,
  records: readonly ScriptRecord[],
  bounds: { segmentBytes?: number } = {},
): Promise<WalPosition> {
  let failure: Error | undefined
  let end: WalPosition | undefined
  const log = await WriteAheadLog.open({
    directory: join(work, 'wal', source),
    onSynced: (position) => {
      end = position
    },
    onCongestion: () => {},
    onFailed: (error) => {
      failure = error
    },
    bounds: { commitIntervalMs: 0, ...bounds },
  })
  const directory = join(work, 'wal', source)
  const numbersOf = numbers.get(directory) ?? new Map<string, number>()
  numbers.set(directory, numbersOf)
  for (const { kind = WAL_KIND.frame, lane = 0, begunMs = 1, ms, frame } of records) {
    const text = frame === undefined ? '' : typeof frame === 'string' ? frame : JSON.stringify(frame)
    const before = starts.get(directory) ?? 0
    if (kind === WAL_KIND.start) starts.set(directory, Math.max(before + 1, Math.round(ms)))
    const start = starts.get(directory) ?? 0
    const connection = `${start}/${lane}/${begunMs}`
    const n = numbersOf.get(connection) ?? 0
    if (kind <= WAL_KIND.mark) numbersOf.set(connection, n + 1)
    log.append({
      start,
      n: kind <= WAL_KIND.mark ? n : 0,
      kind,
      lane,
      begunMs,
      recvTs: BigInt(Math.round(ms * 1000)) * 1000n,
      payload: Buffer.from(text),
    })
  }
  await log.close()
  if (failure !== undefined) throw failure
  return end ?? log.position
}
