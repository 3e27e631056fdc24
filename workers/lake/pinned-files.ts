// The files of the version that a request is pinned to. The request lists and opens only these. A replaced file is read from the
// folder of kept files. If a file has changed and is not kept, the request is refused.

import type { BigIntStats } from 'node:fs'
import { join, relative } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { keptFilePath, type LakePin, type VersionFile } from '../../shared/lake-pin.ts'
import { watchedStat } from './watched-files.ts'

/** A file of the version, and the path of its bytes. */
export interface PinnedFile extends VersionFile {
  readonly path: string
  /** The path below the lake's root, for messages. */
  readonly place: string
  readonly stat: BigIntStats
}

export class PinnedFiles {
  readonly #lake: string
  readonly #version: string
  readonly #files: ReadonlyMap<string, VersionFile>
  readonly #names = new Map<string, Set<string>>()

  constructor(lake: string, { version, files }: LakePin) {
    this.#lake = lake
    this.#version = version
    const list = JSON.parse(Buffer.from(files).toString()) as readonly VersionFile[]
    this.#files = new Map(list.map((file) => [file.key, file]))
    for (const { key } of list) {
      for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) {
        const directory = key.slice(0, end)
        const name = key.slice(end + 1).split('/', 1)[0]!
        const names = this.#names.get(directory)
        if (names === undefined) this.#names.set(directory, new Set([name]))
        else if (names.has(name)) break
        else names.add(name)
      }
    }
  }

  /** The names in a directory below the lake (`lob/source=…`), in code unit order. */
  namesIn(directory: string): string[] {
    return [...(this.#names.get(directory) ?? [])].toSorted()
  }

  /** Undefined if the version has no such file. @throws {ApiError} `version_gone` */
  find(key: string): PinnedFile | undefined {
    const file = this.#files.get(key)
    if (file === undefined) return undefined
    const kept = keptFilePath(this.#lake, file.sha256)
    const keptStat = watchedStat(key, kept)
    if (keptStat !== undefined && isIntact(keptStat, file))
      return { ...file, path: kept, place: relative(this.#lake, kept), stat: keptStat }
    const path = join(this.#lake, ...key.split('/'))
    const stat = watchedStat(key, path)
    if (stat === undefined || identityOf(stat) !== file.stamp) throw this.gone(key)
    return { ...file, path, place: key, stat }
  }

  /** The error for a request whose file was replaced after `find`. */
  gone(key: string): ApiError {
    return new ApiError(
      'version_gone',
      `The file ${key} of version ${this.#version} has been replaced and is not kept; ask without version.`,
    )
  }
}

/** A kept file is a hard link: it changes with the file of the lake if that is overwritten in place. */
function isIntact(kept: BigIntStats, { sizeBytes, stamp }: VersionFile): boolean {
  const isSameFile = stamp.startsWith(`${kept.ino} `)
  return Number(kept.size) === sizeBytes && (!isSameFile || identityOf(kept) === stamp)
}

let known: { readonly id: string; readonly lake: string; readonly files: PinnedFiles } | undefined

/** The files of a pin. A thread caches the last pin. Undefined without a pin. */
export function pinnedFiles(lake: string, pin: LakePin | null | undefined): PinnedFiles | undefined {
  if (pin === null || pin === undefined) return undefined
  if (known?.id !== pin.id || known.lake !== lake)
    known = { id: pin.id, lake, files: new PinnedFiles(lake, pin) }
  return known.files
}
