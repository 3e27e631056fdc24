// Looks at the files of the lake from time to time and keeps the version of each dataset: a short digest of the paths, sizes and
// digests of its closed files. Each file is read once for its digest. With `keepMs` each file gets a second hard link, so that it
// can still be read for this time after it was replaced.

import { link, lstat, mkdir, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { noneThere } from '../../shared/errno.ts'
import { LAKE_DATASETS, type LakeDataset, lakePartitionOfKey } from '../../shared/lake-layout.ts'
import { ApiError } from '../../shared/errors.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { keptFilePath, type LakePin, type StampedFile, type VersionFile } from '../../shared/lake-pin.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { digestOf, lakeKeys } from './file-list.ts'
import { READ_FLAGS } from './lake-file-facts.ts'
import { temporaryPath } from './temporary-file.ts'
import { type DateSpan, type FileSelection, type VersionChange, VersionList } from './version-list.ts'

/** The pause between two looks: at least this, and at least this multiple of a look's duration. */
const PAUSE_MS_MIN = 5_000
const PAUSE_LOOKS = 50
/** The same after `wake`, for example because a request has met a file that is not known yet. */
const WOKEN_PAUSE_MS_MIN = 200
const WOKEN_PAUSE_LOOKS = 2
/** Pause before `onBooks`, so that the first requests after the start are answered before files are read ahead. */
const BOOKS_AFTER_MS = 2_000
/** How often kept files are checked for those that have been kept long enough. */
const EXPIRY_PAUSE_MS = 60_000

export interface LakeVersionsOptions {
  readonly lake: string
  readonly logger: Logger
  /** How long replaced files are kept. */
  readonly keepMs: number
  /**
   * The instants (ms since the epoch) up to which files of records have all rows. A file is listed by its SHA-256. An entry by key
   * applies to any other file there, such as one whose rows are still in the store. Rejects while the store does not respond.
   */
  readonly coldEnds?: (() => Promise<ReadonlyMap<string, number>>) | undefined
  /**
   * Called soon after the first look with the keys of all closed order-book files, and after each look that finds new ones with
   * their keys. Looks continue while it runs; it is not called again before it has ended.
   */
  readonly onBooks?: ((keys: readonly string[], signal: AbortSignal) => Promise<void>) | undefined
}

/** The version header of an answer that is pinned, or made of these files. */
export function versionHeader(
  versions: LakeVersions,
  dataset: LakeDataset,
  {
    files,
    stamps,
    absent = [],
  }: {
    readonly files: readonly string[]
    readonly stamps: readonly string[]
    readonly absent?: readonly string[]
  },
  pinned: string | undefined,
  selection?: FileSelection,
): Readonly<Record<string, string>> {
  const found = [...files, ...absent].map((key, index) => ({ key, stamp: stamps[index] ?? '' }))
  const version = pinned ?? versions.versionOf(dataset, found, selection)
  return version === null ? {} : { 'Lake-Version': version }
}

/** From this date on files may still change, because recordings are added. */
export function openFromDate(nowMs = Date.now()): string {
  return addDays(utcDateOf(nowMs), -1)
}

function isOpen(key: string): boolean {
  const period = lakePartitionOfKey(key)?.period
  return period !== undefined && period.length === 'YYYY-MM-DD'.length && period >= openFromDate()
}

/** Ends early when the signal is aborted. */
function pause(ms: number, until: AbortSignal): Promise<void> {
  return SYSTEM_CLOCK.sleep(ms, until).catch(() => {})
}

export class LakeVersions {
  readonly #options: LakeVersionsOptions
  readonly #lists: Readonly<Record<LakeDataset, VersionList>>
  /** SHA-256 of the kept files. */
  readonly #kept = new Set<string>()
  readonly #closing = new AbortController()
  #woken = new AbortController()
  #running: Promise<void> | undefined
  #expiredMs = 0
  #problem = ''

  constructor(options: LakeVersionsOptions) {
    this.#options = options
    const listOf = (dataset: LakeDataset): VersionList => new VersionList(options.lake, dataset)
    this.#lists = {
      lob: listOf('lob'),
      trades: listOf('trades'),
      candles: listOf('candles'),
      observations: listOf('observations'),
    }
  }

  /** Resolves when the earlier versions are loaded; from then on it looks at the lake until `close`. */
  async start(): Promise<void> {
    await Promise.all(LAKE_DATASETS.map((dataset) => this.#lists[dataset].load()))
    const names = (await readdir(keptFilePath(this.#options.lake, '')).catch(noneThere)) ?? []
    for (const name of names) this.#kept.add(name)
    this.#running = this.#run()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#woken.abort()
    await this.#running
  }

  /** Looks at the lake soon. Call it when rows have left the store: files may have all rows up to a later instant. */
  wake(): void {
    this.#woken.abort()
  }

  /** Oldest first. */
  changesOf(dataset: LakeDataset): readonly VersionChange[] {
    return this.#lists[dataset].changes
  }

  /**
   * The version of an answer made of these files. Null if one of them belongs to no version, because it is open or not known yet.
   * The stamp of a file that the answer did not find is empty. With a selection, the version must have no other files of it.
   */
  versionOf(dataset: LakeDataset, files: readonly StampedFile[], selection?: FileSelection): string | null {
    const list = this.#lists[dataset]
    const isKnown = ({ key, stamp }: StampedFile): boolean =>
      (list.current.get(key)?.stamp ?? '') === stamp && (stamp !== '' || !isOpen(key))
    const isWhole = selection === undefined || list.count(selection) === files.length
    if (list.id !== undefined && files.every(isKnown) && isWhole) return list.id
    if (!files.some(({ key }) => isOpen(key))) this.wake()
    return null
  }

  /**
   * The files of a version, for a request for rows of these dates.
   * @throws {ApiError} `unknown_version`, or `not_pinnable` for open dates
   */
  pin(dataset: LakeDataset, id: string, dates?: DateSpan): LakePin {
    const pin = this.#lists[dataset].pin(id)
    const openFrom = openFromDate()
    if (pin !== undefined && dates !== undefined && dates.last >= openFrom) {
      const date = dates.first > openFrom ? dates.first : openFrom
      throw new ApiError(
        'not_pinnable',
        `Recordings may still be added to ${date}; it can be pinned to a version from ${addDays(date, 2)}T00:00:00Z on.`,
      )
    }
    if (pin !== undefined) return pin
    throw new ApiError(
      'unknown_version',
      `This server knows no version ${id}; /api/v1/versions?dataset=${dataset} lists those that it knows.`,
    )
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    let booksId: string | undefined
    let telling: Promise<void> | undefined
    while (!signal.aborted) {
      const startedMs = Date.now()
      this.#woken = new AbortController()
      await this.#look().catch((error: unknown) => {
        // Log an error once, until it changes.
        const problem = String(error)
        if (!signal.aborted && problem !== this.#problem)
          this.#options.logger.warn({ err: error }, 'the versions of the lake cannot be kept')
        this.#problem = problem
      })
      const { lob } = this.#lists
      if (lob.id !== booksId && telling === undefined) {
        const keys = lob.keysSince(booksId)
        booksId = lob.id
        telling = this.#tellBooks(keys).finally(() => (telling = undefined))
      }
      const tookMs = Date.now() - startedMs
      await pause(Math.max(WOKEN_PAUSE_MS_MIN, WOKEN_PAUSE_LOOKS * tookMs), signal)
      await pause(Math.max(PAUSE_MS_MIN, PAUSE_LOOKS * tookMs), AbortSignal.any([signal, this.#woken.signal]))
    }
    await telling
  }

  async #tellBooks(keys: readonly string[]): Promise<void> {
    const { signal } = this.#closing
    await pause(BOOKS_AFTER_MS, signal)
    if (signal.aborted) return
    await this.#options.onBooks?.(keys, signal).catch((error: unknown) => {
      if (!signal.aborted) this.#options.logger.warn({ err: error }, 'order-book files cannot be read ahead')
    })
  }

  async #look(): Promise<void> {
    // A lake directory that is missing (unmounted) does not mean that files were removed.
    if ((await lstat(this.#options.lake).catch(noneThere)) === undefined) return
    let failure: unknown
    const coldEnds = await this.#options.coldEnds?.().catch(() => undefined)
    for (const dataset of LAKE_DATASETS) {
      const list = this.#lists[dataset]
      const found = new Map<string, VersionFile>()
      const selection = { dataset, source: null, scope: null, from: null, to: null }
      for (const key of await lakeKeys(this.#options.lake, selection)) {
        this.#closing.signal.throwIfAborted()
        if (isOpen(key)) continue
        const known = list.current.get(key)
        const file = await this.#read(key, known)
        // An unchanged file keeps its known instant, even if the store already reports a later file.
        const same = file?.sha256 === known?.sha256 ? known : undefined
        const coldToMs = file && (coldEnds?.get(file.sha256) ?? same?.coldToMs ?? coldEnds?.get(key))
        if (file !== undefined) found.set(key, { ...file, coldToMs: coldToMs ?? null })
      }
      await list.note(found).catch((error: unknown) => {
        failure ??= error
      })
    }
    await this.#expire()
    if (failure !== undefined) throw failure
    this.#problem = ''
  }

  /** The file with its digest, known or computed now; undefined if there is none. */
  async #read(
    key: string,
    known: VersionFile | undefined,
  ): Promise<Omit<VersionFile, 'coldToMs'> | undefined> {
    const { lake, keepMs } = this.#options
    const { signal } = this.#closing
    const path = join(lake, ...key.split('/'))
    if (known !== undefined && (keepMs === 0 || this.#kept.has(known.sha256))) {
      const info = await stat(path, { bigint: true }).catch(noneThere)
      if (info !== undefined && identityOf(info) === known.stamp) return known
    }
    // The link is made before reading, so that the kept file is the one that was read even if its name changes meanwhile.
    const linked = keepMs === 0 ? undefined : temporaryPath(keptFilePath(lake, 'file'))
    try {
      if (linked !== undefined) {
        await mkdir(dirname(linked), { recursive: true })
        // A link to a symbolic link would not keep the file.
        const target = await realpath(path).catch(noneThere)
        if (target === undefined) return undefined
        if ((await link(target, linked).then(() => true, noneThere)) === undefined) return undefined
      }
      const file = await open(linked ?? path, READ_FLAGS).catch(noneThere)
      if (file === undefined) return undefined
      try {
        const info = await file.stat({ bigint: true })
        if (!info.isFile()) return undefined
        const [sizeBytes, stamp] = [Number(info.size), identityOf(info)]
        const startedMs = Date.now()
        const sha256 = known?.stamp === stamp ? known.sha256 : await digestOf(file, sizeBytes, signal)
        if (linked !== undefined && !this.#kept.has(sha256)) {
          await rename(linked, keptFilePath(lake, sha256))
          this.#kept.add(sha256)
        }
        // Pause as long as the reading took, so that it takes at most half of the time.
        await SYSTEM_CLOCK.sleep(Date.now() - startedMs, signal)
        return { key, sizeBytes, sha256, stamp }
      } finally {
        await file.close()
      }
    } finally {
      if (linked !== undefined) await rm(linked, { force: true })
    }
  }

  /** Removes files that were replaced long enough ago. A server without `keepMs` leaves those of other servers. */
  async #expire(): Promise<void> {
    const { lake, keepMs } = this.#options
    const nowMs = Date.now()
    if (keepMs === 0 || this.#kept.size === 0 || nowMs - this.#expiredMs < EXPIRY_PAUSE_MS) return
    this.#expiredMs = nowMs
    const lists = Object.values(this.#lists)
    const current = new Set(lists.flatMap((list) => [...list.current.values()].map(({ sha256 }) => sha256)))
    const replaced = new Map(lists.flatMap((list) => [...list.replaced()]))
    for (const sha256 of this.#kept) {
      const isWanted = current.has(sha256) || nowMs - (replaced.get(sha256) ?? 0) < keepMs
      if (isWanted) continue
      await rm(keptFilePath(lake, sha256), { force: true })
      this.#kept.delete(sha256)
    }
  }
}
