// Reads raw segments. A segment's name states the digest of its lines, which is compared at the end of the file. So damage may be
// found only after the lines were read.

import { isAscii, isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { basename, resolve, sep } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { IMPORT_LINE_BYTES_MAX } from '../../shared/limits.ts'
import { rawFileOfKey, rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { RawSegmentName } from '../../shared/lake-layout.ts'
import { SegmentLineError, parseSegmentLine } from './segment-lines.ts'
import type { SegmentLine } from './segment-lines.ts'

const READ_BYTES = 256 * 1024
// The frames of one chunk are in memory at once. Larger chunks would survive a collection of the young generation.
const UNZIPPED_CHUNK_BYTES = 64 * 1024
/** A line has a message, which may be as long as an imported line, and its place. */
const LINE_BYTES_MAX = IMPORT_LINE_BYTES_MAX + 1024
const NEWLINE = 10
/** raw/source=…/date=…/<name> */
const KEY_PARTS = 4

/** A segment that cannot be used. The message names file, reason and remedy. */
export class DamagedSegmentError extends Error {
  readonly path: string

  /** `reason` continues the sentence after the file's name: `is damaged: …`, `is missing`. */
  constructor(path: string, reason: string, cause?: unknown) {
    const date = fileOfPath(path)?.date ?? '<date>'
    const command = `bookcast rebuild --from ${date} --to ${date} --without-damaged`
    super(`Segment ${path} ${reason}. Restore it from object storage, or run \`${command}\`.`, { cause })
    this.name = 'DamagedSegmentError'
    this.path = path
  }
}

export interface SegmentReaderOptions {
  readonly signal?: AbortSignal | undefined
}

/**
 * The lines of a segment in batches. The first line of the first batch is the only header. The content is checked against the name
 * at the end: trust the lines only after the last batch. Throws the signal's reason.
 * @throws {DamagedSegmentError}
 */
export async function* readSegment(
  path: string,
  options: SegmentReaderOptions = {},
): AsyncGenerator<readonly SegmentLine[]> {
  let isFirst = true
  for await (const texts of readSegmentTexts(path, options)) {
    const lines = texts.map((text) => lineOf(path, text))
    const others = isFirst ? lines.slice(1) : lines
    if (others.some(({ kind }) => kind === 'header')) {
      throw new DamagedSegmentError(path, 'is damaged: it has a second header')
    }
    isFirst = false
    yield lines
  }
}

/** Reads a segment to its end, without keeping anything. Throws the signal's reason. @throws {DamagedSegmentError} */
export async function verifySegment(path: string, options: SegmentReaderOptions = {}): Promise<void> {
  const texts = readSegmentTexts(path, options)
  while ((await texts.next()).done !== true);
}

function lineOf(path: string, text: string): SegmentLine {
  try {
    return parseSegmentLine(text)
  } catch (error) {
    if (!(error instanceof SegmentLineError)) throw error
    throw new DamagedSegmentError(path, `is damaged: ${error.message}`, error)
  }
}

function checkHeader(path: string, text: string): void {
  const line = lineOf(path, text)
  if (line.kind !== 'header')
    throw new DamagedSegmentError(path, 'is damaged: it does not begin with a header')
  const { header } = line
  const source = fileOfPath(path)?.source
  if (source !== undefined && source !== header.source) {
    throw new DamagedSegmentError(
      path,
      `is in the wrong place: it holds messages of ${header.source}, not of ${source}`,
    )
  }
}

/** What the last parts of a path say of the file of a lake's raw folder; undefined for another path. */
export function fileOfPath(path: string): ReturnType<typeof rawFileOfKey> {
  return rawFileOfKey(resolve(path).split(sep).slice(-KEY_PARTS).join('/'))
}

/** The lines' texts in batches, none of them empty. The first line is a header. */
export async function* readSegmentTexts(
  path: string,
  { signal }: SegmentReaderOptions = {},
): AsyncGenerator<readonly string[]> {
  const name = rawSegmentOfName(basename(path))
  if (name === undefined) {
    throw new DamagedSegmentError(path, 'is misnamed: its name is not <recorder>-<hour>-<digest>.ndjson.gz')
  }
  const file = createReadStream(path, { highWaterMark: READ_BYTES, signal })
  const gunzip = createGunzip({ chunkSize: UNZIPPED_CHUNK_BYTES })
  // The callback does nothing: an error of the file destroys gunzip, whose iteration then throws it.
  pipeline(file, gunzip, () => undefined)
  try {
    yield* splitLines(path, name, gunzip)
  } catch (error) {
    signal?.throwIfAborted()
    throw describedError(path, error)
  }
}

function describedError(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return error
  // Without the system's error as cause: callers would report it as a failed write.
  if (error.code === 'ENOENT') return new DamagedSegmentError(path, 'is missing')
  if (!error.code.startsWith('Z_'))
    return new Error(`Cannot read segment ${path}: ${error.message}`, { cause: error })
  return new DamagedSegmentError(path, `is damaged or ends too early (${error.message})`, error)
}

async function* splitLines(
  path: string,
  { digest }: RawSegmentName,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<readonly string[]> {
  const hash = createHash('sha256')
  let rest: Buffer[] = []
  let restBytes = 0
  let isEmpty = true
  for await (const chunk of chunks) {
    hash.update(chunk)
    const end = chunk.lastIndexOf(NEWLINE)
    if (end === -1) {
      rest.push(chunk)
      restBytes += chunk.length
      if (restBytes > LINE_BYTES_MAX) throw new DamagedSegmentError(path, 'is damaged: a line is too long')
      continue
    }
    const head = chunk.subarray(0, end)
    const lines = textOf(path, rest.length === 0 ? head : Buffer.concat([...rest, head])).split('\n')
    if (lines.includes('')) throw new DamagedSegmentError(path, 'is damaged: it has an empty line')
    rest = end + 1 === chunk.length ? [] : [chunk.subarray(end + 1)]
    restBytes = chunk.length - end - 1
    if (isEmpty) checkHeader(path, lines[0]!)
    isEmpty = false
    yield lines
  }
  if (restBytes > 0) throw new DamagedSegmentError(path, 'is damaged: its last line is not complete')
  if (!hash.digest('hex').startsWith(digest)) {
    throw new DamagedSegmentError(path, 'is damaged: its content does not match its name')
  }
  if (isEmpty) throw new DamagedSegmentError(path, 'is damaged: it is empty')
}

function textOf(path: string, bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1')
  if (!isUtf8(bytes)) throw new DamagedSegmentError(path, 'is damaged: it is not valid UTF-8')
  return bytes.toString('utf8')
}
