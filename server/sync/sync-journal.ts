// The journal of a lake's synchronization with one remote place, in a file below the lake's hidden `.sync` directory. It has the
// versions on both sides that hold the same bytes, and the contents that the synchronization wrote. It is a journal, one line per
// change, so that a process that dies loses nothing. Losing the whole file costs time (everything is compared again) and
// the right to replace files, but no data.

import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { noneThere } from '../../shared/errno.ts'
import { SYNC_OWN_DIGESTS_MAX } from '../../shared/limits.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { removeStaleTemporaries, replaceFile } from '../lake/temporary-file.ts'
import type { ObjectHead } from './object-store.ts'

/** The journal's facts about one key. */
export interface SyncRecord {
  /** The latest versions that held the same bytes; null before the first time. */
  readonly sourceVersion: string | null
  readonly targetVersion: string | null
  /** SHA-256 of the contents written by this synchronization, the newest last. */
  readonly own: readonly string[]
}

/** The result of the last complete synchronization. */
export interface SyncOutcome {
  readonly lastSyncMs: number
  readonly fileCount: number
}

const NOTHING_KNOWN: SyncRecord = { sourceVersion: null, targetVersion: null, own: [] }
/** Lines for each record from which a journal is rewritten, so that reading it costs at most a few times its records. */
const JOURNAL_GROWTH_MAX = 2
/** Lines below which rewriting is not worth it. */
const JOURNAL_LINES_MIN = 1_000
/** Bytes of lines that are read at once: some milliseconds' work. A line has a few hundred. */
const PIECE_BYTES = 256 * 1024

/** The part of a journal that this process has read. The next read takes the lines that any process has added since. */
interface JournalText {
  readonly records: Map<string, SyncRecord>
  /** Identifies the file that was read. */
  fileId: string
  readBytes: number
  lineCount: number
  openCount: number
  /** Settles when no call reads or rewrites the file. */
  isFree: Promise<unknown>
}

const TEXTS = new Map<string, JournalText>()

export type SyncJournal = Awaited<ReturnType<typeof openJournal>>

/** Opens the journal of a lake and a remote place, in one direction; rewrites it when most of it is outdated. */
export async function openJournal(lake: string, name: string) {
  const path = journalPath(lake, name)
  await mkdir(join(lake, '.sync'), { recursive: true })
  await removeStaleTemporaries(join(lake, '.sync'))
  const { text, file } = await inTurn(path, openCurrent)
  const set = async (key: string, record: SyncRecord): Promise<void> => {
    text.records.set(key, record)
    // One call for one line: lines of parallel transfers do not mix.
    await file.appendFile(lineOf(key, record)).catch((error: Error) => {
      // Without a path the error would count as one of the store that the transfer writes to.
      throw Object.assign(error, { path })
    })
  }
  return {
    get: (key: string): SyncRecord | undefined => text.records.get(key),
    /** Notes a content before it is written, so that the file is known as its own even after a crash. */
    async noteOwn(key: string, sha256: string): Promise<void> {
      const known = text.records.get(key) ?? NOTHING_KNOWN
      const own = [...known.own.filter((digest) => digest !== sha256), sha256]
      await set(key, { ...known, own: own.slice(-SYNC_OWN_DIGESTS_MAX) })
    },
    /** Notes that two versions hold the same bytes. */
    async noteEqual(key: string, sourceVersion: string, targetVersion: string): Promise<void> {
      await set(key, { sourceVersion, targetVersion, own: text.records.get(key)?.own ?? [] })
    },
    async close(): Promise<void> {
      text.openCount -= 1
      await file.close()
    },
  }
}

/** Opens the file and reads what is new in it. */
async function openCurrent(text: JournalText, path: string) {
  let file = await open(path, 'a+')
  try {
    const sizeBytes = await readAdded(text, file)
    // Separates the next line from an incomplete one, which a killed process or a full disk has left.
    if (text.readBytes < sizeBytes) await file.appendFile('\n')
    const isOutdated = text.lineCount > Math.max(JOURNAL_GROWTH_MAX * text.records.size, JOURNAL_LINES_MIN)
    // Another writer that has it open would continue to write to the old file.
    if (isOutdated && text.openCount === 0) {
      await rewrite(path, text.records)
      await file.close()
      file = await open(path, 'a+')
      const { size } = await file.stat()
      Object.assign(text, { fileId: await fileIdOf(file), readBytes: size, lineCount: text.records.size })
    }
  } catch (error) {
    await file.close()
    throw error
  }
  text.openCount += 1
  return { text, file }
}

/** Reads a journal without writing to it; empty if there is none. */
export async function readJournal(lake: string, name: string): Promise<ReadonlyMap<string, SyncRecord>> {
  return inTurn(journalPath(lake, name), async (text, path) => {
    const file = await open(path).catch(() => undefined)
    if (file === undefined) return new Map()
    await readAdded(text, file).finally(() => file.close())
    return text.records
  })
}

/** Whether this synchronization wrote the target's object, or found it to be the same. */
export function wasWritten(record: SyncRecord | undefined, { version, sha256 }: ObjectHead): boolean {
  if (record === undefined) return false
  return record.targetVersion === version || (sha256 !== null && record.own.includes(sha256))
}

/** The outcome of the lake's last complete synchronization, or undefined before the first one. */
export async function readOutcome(lake: string): Promise<SyncOutcome | undefined> {
  const text = await readFile(outcomePath(lake), 'utf8').catch(() => '')
  const outcome = parsedJson(text) as SyncOutcome | null | undefined
  const { lastSyncMs, fileCount } = outcome ?? {}
  return Number.isSafeInteger(lastSyncMs) && Number.isSafeInteger(fileCount) ? outcome! : undefined
}

/** Renames keys in the journals of a lake that no process has open. `newKey` gives `undefined` for a key that stays. */
export async function migrateJournals(
  lake: string,
  newKey: (key: string) => string | undefined,
): Promise<void> {
  const directory = join(lake, '.sync')
  const names = (await readdir(directory).catch(noneThere)) ?? []
  for (const name of names.filter((one) => one.endsWith('.ndjson'))) {
    await inTurn(join(directory, name), async (text, path) => {
      const file = await open(path)
      await readAdded(text, file).finally(() => file.close())
      const keys = [...text.records.keys()]
      if (keys.every((key) => newKey(key) === undefined)) return
      // A key that stays is the later one of two that become the same.
      const renamed = keys.toSorted(
        (a, b) => Number(newKey(a) === undefined) - Number(newKey(b) === undefined),
      )
      await rewrite(path, new Map(renamed.map((key) => [newKey(key) ?? key, text.records.get(key)!])))
    })
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

/** Runs `work` on a journal after all earlier work on it. */
function inTurn<Value>(
  path: string,
  work: (text: JournalText, path: string) => Promise<Value>,
): Promise<Value> {
  const text: JournalText = TEXTS.get(path) ?? {
    records: new Map(),
    fileId: '',
    readBytes: 0,
    lineCount: 0,
    openCount: 0,
    isFree: Promise.resolve(),
  }
  TEXTS.set(path, text)
  const done = text.isFree.then(() => work(text, path))
  text.isFree = done.catch(() => {})
  return done
}

async function fileIdOf(file: FileHandle): Promise<string> {
  const { ino, birthtimeMs } = await file.stat()
  return `${ino} ${birthtimeMs}`
}

/**
 * Reads the lines added to the file, in pieces, so that other work gets its turn; all of it if it is another file.
 * The last line of every key counts. Resolves to the file's size; an incomplete last line is left to the next read.
 */
async function readAdded(text: JournalText, file: FileHandle): Promise<number> {
  const { size } = await file.stat()
  const fileId = await fileIdOf(file)
  if (text.fileId !== fileId || text.readBytes > size) {
    text.records.clear()
    Object.assign(text, { fileId, readBytes: 0, lineCount: 0 })
  }
  while (text.readBytes < size) {
    let piece = Buffer.alloc(Math.min(PIECE_BYTES, size - text.readBytes))
    const { bytesRead } = await file.read(piece, 0, piece.length, text.readBytes)
    piece = piece.subarray(0, bytesRead)
    const end = piece.lastIndexOf('\n') + 1
    if (end === 0) break
    for (const line of piece.toString('utf8', 0, end - 1).split('\n')) {
      text.lineCount += 1
      const record = parseLine(line)
      if (record === undefined) continue
      const { key, ...known } = record
      text.records.set(key, known)
    }
    text.readBytes += end
  }
  return size
}

async function rewrite(path: string, records: ReadonlyMap<string, SyncRecord>): Promise<void> {
  await replaceFile(path, [...records].map(([key, record]) => lineOf(key, record)).join(''))
}

/** A line of other content is ignored, as one that is cut. */
function parseLine(line: string): (SyncRecord & { readonly key: string }) | undefined {
  const value = parsedJson(line) as (SyncRecord & { readonly key: string }) | null | undefined
  return typeof value?.key === 'string' && Array.isArray(value.own) ? value : undefined
}
