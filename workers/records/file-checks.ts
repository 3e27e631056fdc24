// Verifies a file's checksum before anything else is read from it: once until the file is replaced, by the first thread that
// needs it. A file without a checksum is served unverified. The read does not block the thread's other requests.

import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { ApiError } from '../../shared/errors.ts'
import { FileFacts } from '../../shared/file-facts.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { type FileVerdict, LakeFileVerdicts } from '../../shared/lake-file-verdicts.ts'
import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { recordFileChecksum } from '../../shared/record-file-checksum.ts'
import { lakeFileError } from '../lake/lake-file-error.ts'
import { answered } from '../lake/watched-files.ts'
import type { DuckLake } from './duck-lake.ts'
import { assertRegular, type LakePart } from './lake-partitions.ts'
import { checkLakeFile, type LakeFileSchema } from './lake-query.ts'

// Opening a pipe without a writer would block forever.
const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

export class FileChecks {
  readonly #verdicts = new LakeFileVerdicts()
  readonly #running = new Map<string, Promise<FileVerdict>>()
  readonly #kept = new FileFacts<true>(RECORD_LAKE_FILES_MAX)

  /**
   * Resolves to `right`, or `none` for a file without a checksum.
   * @throws {ApiError} `lake_file_invalid` when the checksum is wrong, `lake_file_changed` when the file was replaced
   */
  async check(part: LakePart): Promise<FileVerdict> {
    const { path, identity, name } = part
    const verdict = this.#verdicts.of(path, identity) ?? (await this.#find(part))
    if (verdict === 'wrong') throw lakeFileError(name, 'it has a wrong checksum')
    return verdict
  }

  /** Checks a file's checksum and contract, once until the file is replaced. Throws ApiError. */
  async checkContract(
    lake: DuckLake,
    part: LakePart,
    contract: LakeFileSchema,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#kept.of(part.path, part.identity) === true) return
    await this.check(part)
    await checkLakeFile(lake, part, contract, signal)
    this.#kept.add(part.path, part.identity, true)
  }

  /** Requests for a file that is being read wait for the same read. */
  async #find(part: LakePart): Promise<FileVerdict> {
    const key = `${part.path} ${part.identity}`
    const running = this.#running.get(key)
    if (running !== undefined) return answered([part], running)
    const finding = read(part).finally(() => this.#running.delete(key))
    this.#running.set(key, finding)
    const verdict = await answered([part], finding)
    this.#verdicts.add(part.path, part.identity, verdict)
    return verdict
  }
}

async function read(part: LakePart): Promise<FileVerdict> {
  try {
    const file = await open(part.path, READ_FLAGS)
    try {
      return await verdictOf(file, part)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw lakeFileError(part.name, 'it cannot be read to its end', error)
  }
}

async function verdictOf(file: FileHandle, { name, identity }: LakePart): Promise<FileVerdict> {
  const stat = await file.stat({ bigint: true })
  assertRegular(name, stat)
  if (identityOf(stat) !== identity)
    throw new ApiError('lake_file_changed', `The lake file ${name} was replaced while it was read.`)
  const checksum = await recordFileChecksum(file)
  if (checksum === undefined) return 'none'
  return checksum.stored === checksum.computed ? 'right' : 'wrong'
}
