// Parses bodies into rows. A body that ends within a row, or is not valid in its format, is incomplete.

import { IncompleteError } from './errors.ts'
import { LINE_FEED } from './given-rows.ts'
import type { Transfer } from './transfer.ts'

/** No row of the server has a line longer than this. */
const LINE_CHARACTERS_MAX = 16 * 1024 * 1024

/** The rows of newline-delimited JSON, one batch for each chunk of the body. */
export async function* ndjsonBatches(transfer: Transfer): AsyncGenerator<unknown[], void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  // The beginning of a line that continues in the next chunk.
  let rest = ''
  for await (const chunk of transfer.chunks()) {
    const end = chunk.lastIndexOf(LINE_FEED)
    // A line feed byte is never part of another UTF-8 character, and a row never contains one.
    const lines = end === -1 ? '' : rest + decode(decoder, chunk.subarray(0, end), transfer)
    rest = (end === -1 ? rest : '') + decode(decoder, chunk.subarray(end + 1), transfer)
    if (rest.length > LINE_CHARACTERS_MAX)
      throw new IncompleteError('there is a line without an end', transfer)
    if (end === -1) {
      transfer.report()
      continue
    }
    const batch = parseLines(lines, transfer)
    transfer.rows += batch.length
    transfer.report()
    yield batch
  }
  if (rest !== '') throw new IncompleteError('it ends within a row', transfer)
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array, transfer: Transfer): string {
  try {
    return decoder.decode(bytes, { stream: true })
  } catch (error) {
    throw new IncompleteError('it is not UTF-8', transfer, error)
  }
}

/** Parses all lines at once, which is faster than line by line. */
function parseLines(lines: string, transfer: Transfer): unknown[] {
  try {
    return JSON.parse(`[${lines.replaceAll('\n', ',')}]`) as unknown[]
  } catch (error) {
    throw new IncompleteError('a line is no row', transfer, error)
  }
}

/** A body of JSON, read as a whole. */
export async function readJson(transfer: Transfer): Promise<unknown> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for await (const chunk of transfer.chunks()) {
    text += decode(decoder, chunk, transfer)
    transfer.report()
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new IncompleteError('it is not the whole of a JSON value', transfer, error)
  }
  transfer.rows = Array.isArray(value) ? value.length : 1
  transfer.report()
  return value
}

export type Format = 'json' | 'ndjson' | 'csv' | 'parquet'

const PARQUET_MAGIC = 'PAR1'

/**
 * The bytes of a body as they arrive. Checks that the body ends as its format requires.
 * @throws {IncompleteError} if it does not
 */
export async function* wholeBytes(
  transfer: Transfer,
  format: Format,
): AsyncGenerator<Uint8Array, void, undefined> {
  let tail = new Uint8Array(0)
  for await (const chunk of transfer.chunks()) {
    tail = Uint8Array.from([...tail, ...chunk.subarray(-PARQUET_MAGIC.length)]).slice(-PARQUET_MAGIC.length)
    transfer.report()
    yield chunk
  }
  const end = String.fromCharCode(...tail)
  const isWhole = {
    json: /[\]}]\s*$/.test(end),
    ndjson: end === '' || end.endsWith('\n'),
    csv: end.endsWith('\n'),
    parquet: end === PARQUET_MAGIC,
  }
  if (!isWhole[format]) throw new IncompleteError(`it does not end as ${format} does`, transfer)
}

/** The bytes after the first line. */
export async function* withoutFirstLine(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let isBehind = false
  for await (const chunk of chunks) {
    const start: number = isBehind ? 0 : chunk.indexOf(LINE_FEED) + 1
    isBehind ||= start > 0
    if (isBehind && start < chunk.length) yield chunk.subarray(start)
  }
}
