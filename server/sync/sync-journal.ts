// What a lake's synchronization with one remote place remembers, in a file below the lake's hidden `.sync` directory:
// which version on the one side is which on the other, and which contents it wrote itself. It is a journal, one line per
// change, so that a process that dies loses nothing. Losing the whole file costs time (everything is compared again) and
// the right to replace files, but no data.

import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { SYNC_OWN_DIGESTS_MAX } from '../../shared/limits.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import type { ObjectHead } from './object-store.ts'

/** What is known of one key. */
export interface SyncRecord {
  /** The versions that held the same bytes last; null before the first time. */
  readonly sourceVersion: string | null
  readonly targetVersion: string | null
  /** SHA-256 of the contents written by this synchronization, the newest last. */
  readonly own: readonly string[]
}

/** How the last complete synchronization went. */
export interface SyncOutcome {
  readonly lastSyncMs: number
  readonly fileCount: number
}

const NOTHING_KNOWN: SyncRecord = { sourceVersion: null, targetVersion: null, own: [] }
/** Lines for each record from which a journal is rewritten. */
const JOURNAL_GROWTH_MAX = 8

export class SyncJournal {
  readonly #records: Map<string, SyncRecord>
  readonly #file: FileHandle

  private constructor(records: Map<string, SyncRecord>, file: FileHandle) {
    this.#records = records
    this.#file = file
  }

  /** Opens the journal of a lake and a remote place, in one direction; rewrites it when most of it is outdated. */
  static async open(lake: string, name: string): Promise<SyncJournal> {
    const path = journalPath(lake, name)
    await mkdir(join(lake, '.sync'), { recursive: true })
    const text = await readFile(path, 'utf8').catch(() => '')
    const { records, lineCount } = readRecords(text)
    if (lineCount > JOURNAL_GROWTH_MAX * (records.size + 1)) await rewrite(path, records)
    const file = await open(path, 'a')
    // Parts the next line from one that a dying process left incomplete.
    if (text !== '' && !text.endsWith('\n')) await file.appendFile('\n')
    return new SyncJournal(records, file)
  }

  /** What a journal says, without writing to it; nothing where there is none. */
  static async read(lake: string, name: string): Promise<ReadonlyMap<string, SyncRecord>> {
    return readRecords(await readFile(journalPath(lake, name), 'utf8').catch(() => '')).records
  }

  get(key: string): SyncRecord | undefined {
    return this.#records.get(key)
  }

  /** Notes a content before it is written: whatever becomes of the process, the file is known as its own. */
  async noteOwn(key: string, sha256: string): Promise<void> {
    const known = this.#records.get(key) ?? NOTHING_KNOWN
    const own = [...known.own.filter((digest) => digest !== sha256), sha256]
    await this.#set(key, { ...known, own: own.slice(-SYNC_OWN_DIGESTS_MAX) })
  }

  /** Notes that two versions hold the same bytes. */
  async noteEqual(key: string, sourceVersion: string, targetVersion: string): Promise<void> {
    await this.#set(key, { sourceVersion, targetVersion, own: this.#records.get(key)?.own ?? [] })
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  async #set(key: string, record: SyncRecord): Promise<void> {
    this.#records.set(key, record)
    // One call for one line: lines of parallel transfers do not mix.
    await this.#file.appendFile(lineOf(key, record))
  }
}

/** Whether an object of the target is one that was written, or found to be the same. */
export function wasWritten(record: SyncRecord | undefined, { version, sha256 }: ObjectHead): boolean {
  if (record === undefined) return false
  return record.targetVersion === version || (sha256 !== null && record.own.includes(sha256))
}

/** The outcome of the lake's last complete synchronization, or undefined before the first one. */
export async function readOutcome(lake: string): Promise<SyncOutcome | undefined> {
  try {
    const outcome: unknown = JSON.parse(await readFile(outcomePath(lake), 'utf8'))
    return isOutcome(outcome) ? outcome : undefined
  } catch {
    return undefined
  }
}

export async function writeOutcome(lake: string, outcome: SyncOutcome): Promise<void> {
  await replaceFile(outcomePath(lake), JSON.stringify(outcome))
}

function outcomePath(lake: string): string {
  return join(lake, '.sync', 'outcome.json')
}

function journalPath(lake: string, name: string): string {
  return join(lake, '.sync', `${createHash('sha256').update(name).digest('hex').slice(0, 16)}.ndjson`)
}

function lineOf(key: string, record: SyncRecord): string {
  return `${JSON.stringify({ key, ...record })}\n`
}

/** The last line of every key. A line that a dying process left incomplete is skipped. */
function readRecords(text: string): {
  readonly records: Map<string, SyncRecord>
  readonly lineCount: number
} {
  const records = new Map<string, SyncRecord>()
  const lines = text.split('\n')
  for (const line of lines) {
    const record = parseLine(line)
    if (record === undefined) continue
    const { key, ...rest } = record
    records.set(key, rest)
  }
  return { records, lineCount: lines.length }
}

async function rewrite(path: string, records: ReadonlyMap<string, SyncRecord>): Promise<void> {
  await replaceFile(path, [...records].map(([key, record]) => lineOf(key, record)).join(''))
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = temporaryPath(path)
  const file = await open(draft, 'w')
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
}

function parseLine(line: string): (SyncRecord & { readonly key: string }) | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isLine(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isLine(value: unknown): value is SyncRecord & { readonly key: string } {
  if (typeof value !== 'object' || value === null) return false
  const { key, own, sourceVersion, targetVersion } = value as Record<string, unknown>
  return (
    typeof key === 'string' &&
    Array.isArray(own) &&
    own.every((digest) => typeof digest === 'string') &&
    isVersion(sourceVersion) &&
    isVersion(targetVersion)
  )
}

function isVersion(value: unknown): boolean {
  return value === null || typeof value === 'string'
}

function isOutcome(value: unknown): value is SyncOutcome {
  if (typeof value !== 'object' || value === null) return false
  const { lastSyncMs, fileCount } = value as Record<string, unknown>
  return Number.isSafeInteger(lastSyncMs) && Number.isSafeInteger(fileCount)
}
