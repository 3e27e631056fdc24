// The versions of a dataset, oldest first: a version is the result of all changes up to it. The changes are written to a file below
// the lake, one line each, so that a restarted server knows them. A line states the resulting files, not an operation, so lines
// that two servers write for one lake do no harm.

import { appendFile, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { BoundedMap } from '../../shared/bounded-map.ts'
import { contentIdentity } from '../../shared/content-identity.ts'
import { noneThere } from '../../shared/errno.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import { type DerivedFile, derivedFileOfKey, type LakeDataset } from '../../shared/lake-layout.ts'
import { type LakePin, type VersionFile, VERSIONS_DIRECTORY } from '../../shared/lake-pin.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { replaceFile } from './temporary-file.ts'

/** The limit on versions, and how many of the oldest are merged into one beyond it. */
const VERSIONS_MAX = 1_000
const FORGOTTEN = 100
/** Versions whose files are cached for requests. */
const PINS_MAX = 4
const ID_CHARACTERS = 12

export interface VersionChange {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly createdMs: number
  /** Files that were added or replaced. */
  readonly files: readonly VersionFile[]
  /** Keys of files that were removed. */
  readonly removed: readonly string[]
}

/** UTC dates, both inclusive. */
export interface DateSpan {
  readonly first: string
  readonly last: string
}

/** Files with one date each. */
export interface FileSelection {
  readonly source: LobSource
  /** Null for all. */
  readonly series: readonly string[] | null
  readonly dates: DateSpan
}

export class VersionList {
  readonly #dataset: LakeDataset
  readonly #path: string
  #changes: VersionChange[] = []
  readonly #current = new Map<string, VersionFile>()
  #pins = new BoundedMap<LakePin>(PINS_MAX)
  #pinCount = 0
  /** The current files by source and series; made when it is needed. */
  #bySeries: ReadonlyMap<string, readonly DerivedFile[]> | undefined
  /** Lines that could not be written yet, for example because the disk is full. */
  #unwritten = ''

  constructor(lake: string, dataset: LakeDataset) {
    this.#dataset = dataset
    this.#path = join(lake, VERSIONS_DIRECTORY, `${dataset}.ndjson`)
  }

  get current(): ReadonlyMap<string, VersionFile> {
    return this.#current
  }

  /** The first change has all files of the oldest version. Adjacent changes with one id are one version. */
  get changes(): readonly VersionChange[] {
    return this.#changes
  }

  get id(): string | undefined {
    return this.#changes.at(-1)?.id
  }

  /** The number of current files of a selection. */
  count({ source, series, dates: { first, last } }: FileSelection): number {
    this.#bySeries ??= groupedBy(
      [...this.#current.keys()].flatMap((key) => derivedFileOfKey(key) ?? []),
      (file) => `${file.source} ${file.series}`,
    )
    const lists = series?.map((name) => this.#bySeries!.get(`${source} ${name}`) ?? [])
    let count = 0
    for (const list of lists ?? this.#bySeries.values())
      for (const file of list) if (file.source === source && first <= file.date && file.date <= last) count++
    return count
  }

  /** Keys of files that were added or replaced after a version; all keys if it is not known. */
  keysSince(id: string | undefined): readonly string[] {
    const known = this.#changes.findLastIndex((change) => change.id === id)
    if (known === -1) return [...this.#current.keys()]
    return this.#changes.slice(known + 1).flatMap(({ files }) => files.map(({ key }) => key))
  }

  /** Reads the written changes. A line that is cut or damaged is left out. */
  async load(): Promise<void> {
    const text = await readFile(this.#path, 'utf8')
      .catch(noneThere)
      .catch((error: unknown) => {
        const reason = `The list of versions ${this.#path} cannot be read (${String(error)}). Remove or rename it: a new list begins without earlier versions.`
        throw new Error(reason, { cause: error })
      })
    for (const line of text?.split('\n') ?? []) {
      const change = changeOf(line)
      if (change === undefined) continue
      applyTo(this.#current, change)
      this.#changes.push(change)
    }
  }

  /** Records the files that were found, if they have changed, and resolves when that is written. */
  async note(found: ReadonlyMap<string, VersionFile>): Promise<void> {
    const differing = [...found.values()].filter((file) => !isSame(this.#current.get(file.key), file))
    const isMoved = (file: VersionFile): boolean => this.#current.get(file.key)?.sha256 === file.sha256
    const [moved, files] = [differing.filter(isMoved), differing.filter((file) => !isMoved(file))]
    const removed = [...this.#current.keys()].filter((key) => !found.has(key))
    if (moved.length > 0) this.#add(moved, [])
    if (files.length > 0 || removed.length > 0) this.#add(files, removed)
    if (this.#unwritten !== '') await this.#write()
  }

  #add(files: readonly VersionFile[], removed: readonly string[]): void {
    applyTo(this.#current, { files, removed })
    this.#bySeries = undefined
    const noted = { id: this.#idOf(this.#current), createdMs: Date.now(), files, removed }
    this.#changes.push(noted)
    this.#pins = new BoundedMap(PINS_MAX)
    this.#unwritten += lineOf(noted)
  }

  async #write(): Promise<void> {
    if (this.#changes.length > VERSIONS_MAX) {
      const { createdMs, id } = this.#changes[FORGOTTEN]!
      const base = [...this.#filesUpTo(FORGOTTEN).values()]
      this.#changes = [{ id, createdMs, files: base, removed: [] }, ...this.#changes.slice(FORGOTTEN + 1)]
      await replaceFile(this.#path, this.#changes.map(lineOf).join(''))
    } else {
      await mkdir(dirname(this.#path), { recursive: true })
      await appendFile(this.#path, this.#unwritten)
    }
    this.#unwritten = ''
  }

  /** The files of a version; undefined if it is not known. */
  pin(id: string): LakePin | undefined {
    const pin = this.#pins.get(id) ?? this.#pinOf(id)
    if (pin === undefined) return undefined
    this.#pins.set(id, pin)
    return pin
  }

  /** When each file content that is no longer current was replaced or removed, by SHA-256. */
  replaced(): ReadonlyMap<string, number> {
    const files = new Map<string, VersionFile>()
    const replacedMs = new Map<string, number>()
    for (const change of this.#changes) {
      for (const key of [...change.files.map((file) => file.key), ...change.removed]) {
        const before = files.get(key)
        if (before !== undefined) replacedMs.set(before.sha256, change.createdMs)
      }
      applyTo(files, change)
    }
    for (const { sha256 } of files.values()) replacedMs.delete(sha256)
    return replacedMs
  }

  /** If lines are lost or come from two servers, the files up to a line may not be those of its version: then it is skipped. */
  #pinOf(version: string): LakePin | undefined {
    const lines = this.#changes.flatMap(({ id }, index) => (id === version ? [index] : []))
    const found = lines
      .toReversed()
      .map((index) => this.#filesUpTo(index))
      .find((files) => this.#idOf(files) === version)
    if (found === undefined) return undefined
    // A file with the same bytes may have got another stamp since, for example by a restore.
    const present = [...found.values()].map((file) => {
      const current = this.#current.get(file.key)
      return current?.sha256 === file.sha256 ? { ...file, stamp: current.stamp } : file
    })
    const bytes = Buffer.from(JSON.stringify(present))
    const files = new SharedArrayBuffer(bytes.length)
    new Uint8Array(files).set(bytes)
    this.#pinCount += 1
    return { version, id: `${version} ${this.#pinCount}`, files }
  }

  #filesUpTo(last: number): Map<string, VersionFile> {
    const files = new Map<string, VersionFile>()
    for (const change of this.#changes.slice(0, last + 1)) applyTo(files, change)
    return files
  }

  #idOf(files: ReadonlyMap<string, VersionFile>): string {
    const parts = [...files.values()]
      .map(({ key, sizeBytes, sha256 }) => `${key} ${sizeBytes} ${sha256}`)
      .toSorted()
    return `${this.#dataset}-${contentIdentity(parts).slice(0, ID_CHARACTERS)}`
  }
}

function applyTo(files: Map<string, VersionFile>, change: Pick<VersionChange, 'files' | 'removed'>): void {
  for (const key of change.removed) files.delete(key)
  for (const file of change.files) files.set(file.key, file)
}

function isSame(left: VersionFile | undefined, right: VersionFile): boolean {
  return left?.sha256 === right.sha256 && left.stamp === right.stamp && left.coldToMs === right.coldToMs
}

/** Begins with a line feed, because the line before may have been cut. */
function lineOf(change: VersionChange): string {
  return `\n${JSON.stringify(change)}\n`
}

function changeOf(line: string): VersionChange | undefined {
  const change = parsedJson(line) as VersionChange | null | undefined
  return Array.isArray(change?.files) && Array.isArray(change.removed) ? change : undefined
}
