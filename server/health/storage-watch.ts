// Measures the free space where the process writes, and the size of the lake and of the recorders' logs. It warns when a disk
// becomes nearly full, well before a write fails, and once an hour while it stays so.

import { stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { lobSources } from '../../shared/lob-sources.ts'
import { REMIND_MS } from '../../shared/limits.ts'
import { RepeatedTurns } from '../tasks/repeated-turns.ts'
import type { TaskLog } from '../tasks/task-log.ts'
import { filesBelow } from '../lake/files-below.ts'

export type StoragePlace = 'lake' | 'recorder' | 'data' | 'temporary'

/** Bytes; `freeBytes` is the space that this user may still use. */
export interface DiskFigures {
  readonly place: StoragePlace
  readonly freeBytes: number
  readonly sizeBytes: number
  readonly isLow: boolean
}

export interface StorageFigures {
  readonly disks: readonly DiskFigures[]
  /** Size of the lake's parquet files; null before the first look, or if there are too many files to add up. */
  readonly lakeBytes: number | null
  /** Size of the recorders' logs, by exchange. */
  readonly walBytes: Readonly<Record<string, number>>
}

export interface StorageWatchOptions {
  /** Null if the process has no lake of its own. */
  readonly lake: string | null
  /** The recorder's work directory. */
  readonly recorder: string | null
  /** The embedded store's directory. */
  readonly data: string | null
  /** Default: the system's directory for temporary files. */
  readonly temporary?: string
  readonly logger: TaskLog
  /** For tests. */
  readonly intervalMs?: number
}

const INTERVAL_MS = 15_000
/** Adding up a lake's files reads every directory of it. */
const LAKE_EVERY_ROUNDS = 20
/** A disk is low below a tenth of its size, or below 5 GiB if that is less: half an hour of the busiest log. */
const LOW_SHARE = 0.1
const LOW_BYTES_MAX = 5 * 1024 ** 3

export class StorageWatch extends RepeatedTurns {
  readonly #options: StorageWatchOptions
  readonly #warnedMs = new Map<StoragePlace, number>()
  #figures: StorageFigures = { disks: [], lakeBytes: null, walBytes: {} }
  #rounds = 0

  constructor(options: StorageWatchOptions) {
    super(options.intervalMs ?? INTERVAL_MS)
    this.#options = options
  }

  get figures(): StorageFigures {
    return this.#figures
  }

  protected override async take(signal: AbortSignal): Promise<void> {
    await this.look(signal)
  }

  /** Looks once. */
  async look(signal?: AbortSignal): Promise<StorageFigures> {
    const { lake, recorder, data, temporary = tmpdir() } = this.#options
    const places = { lake, recorder, data, temporary }
    const disks: DiskFigures[] = []
    for (const [place, path] of Object.entries(places) as [StoragePlace, string | null][]) {
      const disk = path === null ? undefined : await diskOf(place, path)
      if (disk === undefined) continue
      disks.push(disk)
      this.#tell(disk, path!)
    }
    const isLakeDue = this.#rounds++ % LAKE_EVERY_ROUNDS === 0
    const lakeBytes = isLakeDue ? await lakeBytesOf(lake, signal) : this.#figures.lakeBytes
    this.#figures = { disks, lakeBytes, walBytes: recorder === null ? {} : await logBytes(recorder) }
    return this.#figures
  }

  #tell({ place, freeBytes, sizeBytes, isLow }: DiskFigures, path: string): void {
    const { logger } = this.#options
    const warnedMs = this.#warnedMs.get(place)
    const context = { place, path, free_bytes: freeBytes, size_bytes: sizeBytes }
    if (isLow && (warnedMs === undefined || Date.now() - warnedMs > REMIND_MS)) {
      this.#warnedMs.set(place, Date.now())
      logger.warn(context, 'the disk is nearly full')
    } else if (!isLow && warnedMs !== undefined) {
      this.#warnedMs.delete(place)
      logger.info(context, 'the disk has room again')
    }
  }
}

async function lakeBytesOf(lake: string | null, signal: AbortSignal | undefined): Promise<number | null> {
  return lake === null ? null : await bytesBelow(lake, '.parquet', signal).catch(() => null)
}

/** The disk of the directory, or of its nearest existing parent if it does not exist yet. */
async function diskOf(place: StoragePlace, path: string): Promise<DiskFigures | undefined> {
  let directory = resolve(path)
  for (;;) {
    const found = await statfs(directory).catch(() => undefined)
    if (found !== undefined) {
      const [freeBytes, sizeBytes] = [found.bavail * found.bsize, found.blocks * found.bsize]
      return {
        place,
        freeBytes,
        sizeBytes,
        isLow: freeBytes < Math.min(sizeBytes * LOW_SHARE, LOW_BYTES_MAX),
      }
    }
    if (dirname(directory) === directory) return undefined
    directory = dirname(directory)
  }
}

async function logBytes(recorder: string): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {}
  for (const source of lobSources()) {
    const bytes = await bytesBelow(join(recorder, 'wal', source), '.wal').catch(() => undefined)
    if (bytes !== undefined) sizes[source] = bytes
  }
  return sizes
}

/** The total size of all files with this ending. Files that vanish meanwhile are not counted. */
async function bytesBelow(root: string, ending: string, signal?: AbortSignal): Promise<number> {
  let bytes = 0
  for await (const path of filesBelow(root, ending, signal)) {
    bytes += (await stat(path).catch(() => undefined))?.size ?? 0
  }
  return bytes
}
