// Makes one part of an export: a pure, idempotent function of the plan and the lake. A record of the part is written after it. If
// both exist and match, there is nothing to do.

import { createGzip } from 'node:zlib'
import { GZIP_OPTIONS } from '../http/compression.ts'
import { type ByteStream, chunksOf } from '../http/byte-stream.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import type { PlanHead, PlannedPart } from './export-plan.ts'
import { DATASETS, type PartQuery } from './export-query.ts'
import { digestOf, type ExportTarget, putObject, readText, retriedAt } from './export-target.ts'
import type { PartThreads } from './part-threads.ts'
import { checkFiles } from './source-files.ts'

/** A finished part. */
export interface PartRecord {
  readonly key: string
  readonly rows: number
  /** Size of the object. */
  readonly bytes: number
  readonly sha256: string
  /** The first and last instant of its rows, RFC 3339. */
  readonly first_ts: string | null
  readonly last_ts: string | null
}

/** The resources of `runPart` besides the plan. Several calls may share them. */
export interface PartTools {
  readonly threads: PartThreads
  readonly target: ExportTarget
  /** Called with the number of bytes written, or with the size of a part that exists already. */
  readonly onBytes?: ((count: number) => void) | undefined
}

/** Prefix of the records' keys. Engines that read hive directories ignore names that begin with an underscore. */
export const RECORDS_PREFIX = '_parts/'

function recordKey({ key }: PlannedPart): string {
  return `${RECORDS_PREFIX}${key.split('/').at(-1)}.json`
}

/** The record of a part, if the object has the recorded size and, if the target stores it, the recorded checksum. */
export async function recordOf(
  target: ExportTarget,
  part: PlannedPart,
  signal: AbortSignal,
): Promise<PartRecord | undefined> {
  const text = await readText(target, recordKey(part), signal)
  const record = text === undefined ? undefined : (parsedJson(text) as PartRecord | undefined)
  if (record === undefined) return undefined
  const found = await retriedAt(target, signal, () => target.stat(part.key, signal))
  const isSame = found?.bytes === record.bytes && (found.sha256 ?? record.sha256) === record.sha256
  return isSame ? record : undefined
}

/** The record of a part, if every byte of the object matches it. */
async function doneRecord(
  target: ExportTarget,
  part: PlannedPart,
  signal: AbortSignal,
): Promise<PartRecord | undefined> {
  const record = await recordOf(target, part, signal)
  if (record === undefined || target.checksUploads) return record
  return (await digestOf(target, part.key, signal))?.sha256 === record.sha256 ? record : undefined
}

/**
 * Makes a part of a plan, unless the target has it with the right checksum, and resolves to its record. Several processes may make
 * the same part at once. If `signal` aborts, it rejects and leaves nothing behind.
 * @throws {Error} that names a lake file which changed since the plan; errors of the target as it describes them
 */
export async function runPart(
  head: PlanHead,
  part: PlannedPart,
  tools: PartTools,
  signal: AbortSignal,
): Promise<PartRecord> {
  const { target, onBytes } = tools
  const done = await doneRecord(target, part, signal)
  if (done !== undefined) {
    onBytes?.(done.bytes)
    return done
  }
  const record = await makePart(head, part, tools, signal)
  await putObject(target, recordKey(part), [`${JSON.stringify(record)}\n`], signal)
  return record
}

async function makePart(
  { dataset, parameters, range }: PlanHead,
  { key, scope, period, rows, files, closes_at: closesAtMs = {} }: PlannedPart,
  { threads, target, onBytes }: PartTools,
  signal: AbortSignal,
): Promise<PartRecord> {
  const query = DATASETS[dataset].queryOf(parameters, range, scope, period)
  const checkUnchanged = await checkFiles(threads.lake, files)
  const stream = await threads.open(query, { closesAtMs, headOnly: false, signal })
  /** Checks lake files and row count at the end, so that an error comes before the object gets its name. */
  const checkedBytes = async function* () {
    yield* partBytes(stream, query)
    await checkUnchanged()
    if (stream.rows !== rows) throw new Error(`${key} has ${stream.rows} rows, not ${rows}`)
  }
  try {
    const added = stream.head.files.find((name) => !files.some(({ path }) => path === name))
    if (added !== undefined)
      throw new Error(`the lake file ${added} was added since the plan was made; plan again`)
    const { bytes, sha256 } = await putObject(target, key, checkedBytes(), signal, onBytes)
    const [first_ts, last_ts] = [textOf(stream.span?.firstMs), textOf(stream.span?.lastMs)]
    return { key, rows, bytes, sha256, first_ts, last_ts }
  } finally {
    await stream.close()
  }
}

function textOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}

/** The bytes of a part; ndjson is compressed with gzip. A chunk is valid until the next one is requested. */
export function partBytes(stream: ByteStream, { format }: PartQuery): AsyncGenerator<Uint8Array, void, void> {
  return format === 'ndjson' ? compressed(stream) : chunksOf(stream)
}

async function* compressed(stream: ByteStream): AsyncGenerator<Uint8Array, void, void> {
  const gzip = createGzip(GZIP_OPTIONS)
  const feed = async (): Promise<void> => {
    for await (const chunk of chunksOf(stream)) {
      // The thread reuses this memory once the next chunk is requested.
      await new Promise<void>((resolve, reject) => {
        gzip.write(chunk, (error) => (error ? reject(error) : resolve()))
      })
    }
    gzip.end()
  }
  const feeding = feed().catch((error: unknown) => void gzip.destroy(error as Error))
  try {
    yield* gzip
  } finally {
    gzip.destroy()
    await feeding
  }
}
