// The inputs of an import: files in the order of their first message's time, so that the order of the arguments does not
// matter, and stdin after them.

import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { IMPORT_HELD_MESSAGES_MAX } from '../../shared/limits.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { BadLineError } from './bad-line.ts'
import { parseKalshiFrame } from './kalshi-frame.ts'
import { readLines } from './line-reader.ts'
import { parsePolymarketFrame } from './polymarket-frame.ts'
import { parseRecordedLine } from './recorded-message.ts'
import type { RecordedMessage } from './recorded-message.ts'

const READ_BYTES = 256 * 1024
const STDIN = '-'

export interface ImportInput {
  /** As messages name it. */
  readonly name: string
  /** `undefined` for stdin. */
  readonly sizeBytes: number | undefined
  readonly open: () => Readable
}

/** The inputs in the order in which they are read. Throws an error that names a file which cannot be read. */
export async function orderInputs(
  paths: readonly string[],
  source: LobSource,
  stdin: Readable,
  signal: AbortSignal,
): Promise<ImportInput[]> {
  const files: { path: string; sizeBytes: number; firstTs: bigint | undefined }[] = []
  for (const path of new Set(paths.filter((one) => one !== STDIN))) {
    const { sizeBytes, firstTs } = await inspect(path, source, signal)
    files.push({ path, sizeBytes, firstTs })
  }
  files.sort((a, b) => compareTimes(a.firstTs, b.firstTs) || (a.path < b.path ? -1 : 1))
  const inputs: ImportInput[] = files.map(({ path, sizeBytes }) => ({
    name: path,
    sizeBytes,
    open: () => createReadStream(path, { highWaterMark: READ_BYTES }),
  }))
  if (paths.includes(STDIN) || paths.length === 0) {
    inputs.push({ name: 'stdin', sizeBytes: undefined, open: () => stdin })
  }
  return inputs
}

async function inspect(
  path: string,
  source: LobSource,
  signal: AbortSignal,
): Promise<{ sizeBytes: number; firstTs: bigint | undefined }> {
  try {
    const { size } = await stat(path)
    return { sizeBytes: size, firstTs: await firstTime(path, source, signal) }
  } catch (error) {
    signal.throwIfAborted()
    throw new Error(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

// The first time that a message carries. Polymarket's books tell when they last changed, which may be long before: the
// earliest of them only counts where nothing else has a time.
async function firstTime(path: string, source: LobSource, signal: AbortSignal): Promise<bigint | undefined> {
  let bookTs: bigint | undefined
  let messages = 0
  for await (const lines of readLines(createReadStream(path), { signal })) {
    for (const { text } of lines) {
      const message = typeof text === 'string' ? tolerant(() => parseRecordedLine(text)) : undefined
      if (message === undefined) continue
      const { ts, isBook } = timeOf(message, source)
      if (ts !== undefined && !isBook) return ts
      if (ts !== undefined && (bookTs === undefined || ts < bookTs)) bookTs = ts
      messages += message.frames.length
      if (messages > IMPORT_HELD_MESSAGES_MAX) return bookTs
    }
  }
  return bookTs
}

function timeOf(
  { recvTs, frames }: RecordedMessage,
  source: LobSource,
): { ts: bigint | undefined; isBook: boolean } {
  if (recvTs !== undefined) return { ts: recvTs, isBook: false }
  let earliest: bigint | undefined
  for (const frame of frames) {
    const found = tolerant(() =>
      source === 'kalshi' ? parseKalshiFrame(frame) : parsePolymarketFrame(frame),
    )
    if (found?.ts === undefined) continue
    if (found.body.kind !== 'book') return { ts: found.ts, isBook: false }
    if (earliest === undefined || found.ts < earliest) earliest = found.ts
  }
  return { ts: earliest, isBook: true }
}

// What is wrong with a line is told when it is imported, not when it is looked at.
function tolerant<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof BadLineError) return undefined
    throw error
  }
}

function compareTimes(a: bigint | undefined, b: bigint | undefined): number {
  if (a === b) return 0
  if (a === undefined) return 1
  if (b === undefined) return -1
  return a < b ? -1 : 1
}
