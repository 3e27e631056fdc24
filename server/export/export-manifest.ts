// Finishes and verifies exports. The manifest has the parameters, the lake files and the parts. `SHA256SUMS` is written last and
// works with `sha256sum -c`. Both depend only on the plan and the parts, not on the processes that made the parts.

import { inParallel } from '../sync/in-parallel.ts'
import type { ExportPlan, SourceFile } from './export-plan.ts'
import { digestOf, type ExportTarget, putObject, readText } from './export-target.ts'
import { recordOf, RECORDS_PREFIX } from './run-part.ts'

export const MANIFEST_KEY = 'manifest.json'
export const SUMS_KEY = 'SHA256SUMS'

/** Objects that are checked, or read, concurrently. */
const LOOKS_MAX = 8
const READS_MAX = 4
const BLOCK_LENGTH_MIN = 64 * 1024
/** Missing parts that a message lists. */
const NAMED_MAX = 5

/**
 * Writes the manifest and then the checksums. All parts must exist. Idempotent.
 * @throws {Error} that lists missing parts
 */
export async function finishExport(plan: ExportPlan, target: ExportTarget, signal: AbortSignal) {
  const files = new Map<string, SourceFile>()
  // Texts take less memory than objects.
  const made: { readonly json: string; readonly key: string; readonly sum: string }[] = []
  const missing: number[] = []
  let bytes = 0
  await inParallel(plan.parts, { parallel: LOOKS_MAX, signal }, async (part, index) => {
    const record = await recordOf(target, part, signal)
    if (record === undefined) {
      missing.push(index)
      return
    }
    await target.sweep(part.key)
    const { known_s, gap_s } = part
    made[index] = {
      json: JSON.stringify({ ...record, known_s, gap_s }),
      key: part.key,
      sum: sumLine(record.sha256, part.key),
    }
    bytes += record.bytes
    for (const file of part.files) files.set(file.path, file)
  })
  if (missing.length > 0) throw new Error(missingText(missing, target))
  const { bookcast_export, version, dataset, range, parameters, rows, left_out } = plan
  const head = { bookcast_export, version, dataset, range, parameters, rows, bytes, left_out }
  const text = manifestText(
    head,
    [...files.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    made.map(({ json }) => json),
  )
  const { sha256 } = await putObject(target, MANIFEST_KEY, blocksOf(text), signal)
  const sums = [...made.map(({ sum }) => sum), sumLine(sha256, MANIFEST_KEY)]
  await putObject(target, SUMS_KEY, blocksOf(sums), signal)
  for (const key of [MANIFEST_KEY, SUMS_KEY]) await target.sweep(key)
  /** `keys`: those of its parts. */
  return { rows, bytes, keys: made.map(({ key }) => key) }
}

function* manifestText(
  head: object,
  files: readonly SourceFile[],
  parts: readonly string[],
): Generator<string, void, void> {
  const members = Object.entries(head).map(
    ([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)},\n`,
  )
  yield `{\n${members.join('')}"files": [\n`
  for (const [index, file] of files.entries()) yield `${index === 0 ? '' : ',\n'}${JSON.stringify(file)}`
  yield '\n],\n"parts": [\n'
  for (const [index, part] of parts.entries()) yield `${index === 0 ? '' : ',\n'}${part}`
  yield '\n]\n}\n'
}

/** The same text in blocks large enough for a write. */
function* blocksOf(lines: Iterable<string>): Generator<string, void, void> {
  let block = ''
  for (const line of lines) {
    block += line
    if (block.length < BLOCK_LENGTH_MIN) continue
    yield block
    block = ''
  }
  yield block
}

function sumLine(sha256: string, key: string): string {
  return `${sha256}  ${key}\n`
}

function missingText(missing: readonly number[], { name }: ExportTarget): string {
  const named = missing
    .toSorted((a, b) => a - b)
    .slice(0, NAMED_MAX)
    .join(', ')
  const more = missing.length > NAMED_MAX ? ` and ${missing.length - NAMED_MAX} more` : ''
  return `${name} lacks ${missing.length} parts of the plan: ${named}${more}; "bookcast export part <plan> --index <n>" makes one`
}

const SUM = /^([\da-f]{64}) {2}(.+)$/

/**
 * Reads every byte of an export and compares it with SHA256SUMS, which also covers the manifest.
 * @throws {Error} if there is no SHA256SUMS
 */
export async function verifyExport(target: ExportTarget, signal: AbortSignal) {
  const text = await readText(target, SUMS_KEY, signal)
  if (text === undefined) throw new Error(`${target.name} is not a finished export: it has no ${SUMS_KEY}`)
  /** One sentence for each object that is missing, wrong or not part of the export. */
  const problems: string[] = []
  const sums = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, sha256, key] = SUM.exec(line) ?? []
    if (sha256 !== undefined && key !== undefined) sums.set(key, sha256)
    else if (line !== '') problems.push(`${SUMS_KEY} has a line without a checksum: ${JSON.stringify(line)}`)
  }
  if (!sums.has(MANIFEST_KEY)) problems.push(`${SUMS_KEY} lacks ${MANIFEST_KEY}`)
  let bytes = 0
  await inParallel(sums, { parallel: READS_MAX, signal }, async ([key, sha256]) => {
    const found = await digestOf(target, key, signal)
    if (found === undefined) problems.push(`${key} is missing`)
    else if (found.sha256 !== sha256) problems.push(`${key} has SHA-256 ${found.sha256}, not ${sha256}`)
    if (key !== MANIFEST_KEY) bytes += found?.bytes ?? 0
  })
  for (const key of await foreignKeys([...sums.keys()], target, signal))
    problems.push(`${key} is not part of this export`)
  sums.delete(MANIFEST_KEY)
  return { parts: sums.size, bytes, problems: problems.toSorted() }
}

/** Objects in the target that are not part of the export: engines that read all files of the target would read them too. */
export async function foreignKeys(
  keys: readonly string[],
  target: ExportTarget,
  signal: AbortSignal,
): Promise<string[]> {
  const known = new Set([...keys, MANIFEST_KEY, SUMS_KEY])
  const foreign: string[] = []
  for await (const key of target.list(signal))
    if (!known.has(key) && !key.startsWith(RECORDS_PREFIX)) foreign.push(key)
  return foreign
}
