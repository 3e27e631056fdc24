// Merges a file of a series and date that lies elsewhere (object storage's, another recorder's) into the lake's: the
// file that one import of both recordings would have written takes the place of the lake's.

import { isErrno } from '../../shared/errno.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { LobFileEvidence } from '../lake/lob-file-evidence.ts'
import { LobRecordingWriter } from '../lake/lob-recording-writer.ts'
import type { LobRecordingWriterOptions } from '../lake/lob-recording-writer.ts'
import { FeedLedger } from './feed-ledger.ts'
import { FeedSpans } from '../feed/feed-spans.ts'
import { OpaqueFileError } from './lake-dates.ts'
import { LakeMerge } from './lake-merge.ts'
import type { LakeFile } from './lake-records.ts'

const CAUSES_MAX = 5

export interface LakeFileMergeOptions extends Pick<LobRecordingWriterOptions, 'spillDirectory' | 'bounds'> {
  readonly lake: string
  readonly source: LobSource
  readonly series: string
  readonly signal?: AbortSignal | undefined
}

/**
 * Puts both together in the lake, which may have no file of the date yet. The other file stays as it is. The caller has the
 * series' lock (merge-lock.ts).
 * @throws {OpaqueFileError} when one of them keeps no evidence; other errors name a file that is broken, or both sources
 *   of a contradiction
 */
export async function mergeLakeFile(other: LakeFile, options: LakeFileMergeOptions): Promise<void> {
  const { lake, source, series, signal, ...bounds } = options
  await refuseOpaque([other.path, lobFilePath(lake, source, series, other.date)])
  const merge = {
    lake,
    source,
    spans: new FeedSpans({ partsAtSilence: false }),
    ledger: new FeedLedger(lake, source),
    replace: false,
    others: [other],
  }
  const writer = new LobRecordingWriter({
    ...bounds,
    lake,
    source,
    onExisting: 'replace',
    merging: {
      seriesTouched: async () => [series],
      strandsOf: async (recording) => await LakeMerge.prepare(merge, recording),
    },
  })
  const abort = (): void => void writer.abort()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    signal?.throwIfAborted()
    await writer.finish()
  } finally {
    signal?.removeEventListener('abort', abort)
    await writer.abort()
  }
}

/** Whether the files cannot be merged, however often it is tried; else the system failed: a full disk and the like. */
export function isMergeRefusal(error: unknown): error is Error {
  let current = error
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth++) {
    if ('syscall' in current) return false
    current = current.cause
  }
  return error instanceof Error
}

async function refuseOpaque(paths: readonly string[]): Promise<void> {
  const opaque: string[] = []
  for (const path of paths) if (await isOpaque(path)) opaque.push(path)
  if (opaque.length > 0) throw new OpaqueFileError(opaque)
}

async function isOpaque(path: string): Promise<boolean> {
  try {
    const file = await LobFileEvidence.open(path)
    await file?.close()
    return file === undefined
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false
    throw error
  }
}
