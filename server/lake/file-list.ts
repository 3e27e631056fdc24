// Lists the files of a lake with checksums and facts, for other engines and for checking copies. Names come from the directories.
// Each file is read once for its checksum, which is then remembered by the file's identity.

import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { BoundedMap } from '../../shared/bounded-map.ts'
import { noneThere } from '../../shared/errno.ts'
import { ApiError } from '../../shared/errors.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { isDerivedDataset, type LakeDataset, lakePartitionOfKey } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { type LakeFileFacts, READ_FLAGS, openFileFacts } from './lake-file-facts.ts'
import { directoryNames } from './series-dates.ts'

/** The files to list; null sets no condition. Dates are inclusive. */
export interface FileSelection {
  readonly dataset: LakeDataset
  readonly source: string | null
  /** The series or station. */
  readonly scope: string | null
  readonly from: string | null
  readonly to: string | null
}

export interface DescribedFile {
  /** Below the lake, with forward slashes. */
  readonly key: string
  readonly sizeBytes: number
  readonly sha256: string
  /** Undefined if the footer cannot be read. */
  readonly facts: Pick<LakeFileFacts, 'rows' | 'minTs' | 'maxTs'> | undefined
}

/** Files whose description is remembered. */
const KNOWN_MAX = 50_000
/** Pieces are short, because each is hashed within one turn of the event loop. */
const READ_BYTES = 64 * 1024

/** Sorted keys. */
export async function lakeKeys(lake: string, selection: FileSelection): Promise<string[]> {
  const { dataset, source, scope, from, to } = selection
  const sources = lobSources().filter((one) => (source ?? one) === one)
  const roots = isDerivedDataset(dataset) ? sources.map((one) => `${dataset}/source=${one}`) : [dataset]
  const keys: string[] = []
  for (const root of roots) {
    for (const directory of await directoryNames(join(lake, root))) {
      const name = /^[a-z]+=(.+)$/.exec(directory)?.[1]
      if (name === undefined || (scope ?? name) !== name) continue
      for (const part of await directoryNames(join(lake, root, directory))) {
        const key = `${root}/${directory}/${part}/${dataset}.parquet`
        const period = lakePartitionOfKey(key)?.period
        if (period === undefined || (from?.slice(0, period.length) ?? '') > period) continue
        if (to === null || to.slice(0, period.length) >= period) keys.push(key)
      }
    }
  }
  return keys.toSorted()
}

/** Describes files one at a time, and remembers the results. The caller limits how many pages wait. */
export class FileDescriptions {
  readonly #lake: string
  readonly #known = new BoundedMap<DescribedFile & { readonly identity: string }>(KNOWN_MAX)
  #turn: Promise<unknown> = Promise.resolve()

  constructor(lake: string) {
    this.#lake = lake
  }

  /**
   * Describes the files of these keys, and stops before it reads more than `bytesMax` bytes. Keys without a file are left out.
   * Resolves to the files and to the number of keys that were checked, at least one.
   */
  page(keys: readonly string[], bytesMax: number, signal: AbortSignal): Promise<[DescribedFile[], number]> {
    const page = this.#turn.then(() => this.#page(keys, bytesMax, signal))
    this.#turn = page.catch(() => {})
    return page
  }

  async #page(
    keys: readonly string[],
    bytesMax: number,
    signal: AbortSignal,
  ): Promise<[DescribedFile[], number]> {
    const files: DescribedFile[] = []
    let [readBytes, looked] = [0, 0]
    for (const key of keys) {
      signal.throwIfAborted()
      const file = await open(join(this.#lake, ...key.split('/')), READ_FLAGS).catch(noneThere)
      try {
        const stat = await file?.stat({ bigint: true })
        if (file !== undefined && stat?.isFile() === true) {
          const [identity, sizeBytes] = [identityOf(stat), Number(stat.size)]
          let known = this.#known.get(key)
          if (known?.identity !== identity) {
            if (looked > 0 && readBytes + sizeBytes > bytesMax) break
            readBytes += sizeBytes
            known = { key, identity, sizeBytes, ...(await describe(file, sizeBytes, signal)) }
          }
          this.#known.set(key, known)
          files.push(known)
        }
      } finally {
        await file?.close()
      }
      looked += 1
    }
    return [files, looked]
  }
}

async function describe(
  file: FileHandle,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<Pick<DescribedFile, 'sha256' | 'facts'>> {
  const sha256 = await digestOf(file, sizeBytes, signal)
  const facts = await openFileFacts(file, sizeBytes)
  return {
    sha256,
    facts: facts && { rows: facts.rows, minTs: facts.minTs, maxTs: facts.maxTs },
  }
}

/** SHA-256 of the first `sizeBytes` bytes, in lower-case hexadecimal. */
export async function digestOf(file: FileHandle, sizeBytes: number, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  const bytes = Buffer.alloc(READ_BYTES)
  for (let offset = 0; offset < sizeBytes;) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(bytes, 0, Math.min(READ_BYTES, sizeBytes - offset), offset)
    if (bytesRead === 0)
      throw new ApiError('lake_file_changed', 'A lake file was cut short while it was read.')
    hash.update(bytes.subarray(0, bytesRead))
    offset += bytesRead
  }
  return hash.digest('hex')
}
