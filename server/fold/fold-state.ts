// The fold state of a date, which the neighbouring dates need. It holds the chains of the date, which of them continue after
// midnight, their books at midnight, and lines of trades near it. Gzip of one JSON document, beside the raw segments.

import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { messageOf } from '../../shared/error-message.ts'
import { isErrno } from '../../shared/errno.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import { stageFile } from '../lake/temporary-file.ts'
import type { DateManifest } from '../raw/date-manifest.ts'
import type { MidnightLines } from '../trades/trade-reading.ts'
import type { ChainOutline } from './chain-outline.ts'

const [zip, unzip] = [promisify(gzip), promisify(gunzip)]
export const FOLD_STATE_NAME = 'fold.json.gz'
/** A larger file is refused. */
const BYTES_MAX = 1024 * 1024 * 1024

/** A market with known books at midnight: that of the serving chain first, then by the time since which each is known. */
export interface ClosingMarket {
  readonly id: string
  readonly series: string
  readonly books: readonly { readonly chain: number; readonly levels: readonly BookLevel[] }[]
}

export interface FoldState {
  /** The series that have order-book files. States of earlier versions have none. */
  readonly series?: readonly string[]
  readonly chains: readonly ChainOutline[]
  /** Chains that continue after midnight, ascending. */
  readonly continued: readonly number[]
  readonly closing: readonly ClosingMarket[]
  /** Markets that each continued chain follows, with their series. */
  readonly followed: readonly (readonly [
    chain: number,
    markets: readonly (readonly [id: string, series: string])[],
  ])[]
  /** Digest of the opening state, which comes from the date before. */
  readonly opening: string
  /** What the trades of the neighbouring dates need once the segments are removed. States of earlier versions have none. */
  readonly midnight?: readonly MidnightLines[] | undefined
}

/** A digest of plain data. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
}

/** Undefined if there is none. Rejects with an error that names the file if it cannot be read. */
export async function readFoldState(directory: string): Promise<FoldState | undefined> {
  const path = join(directory, FOLD_STATE_NAME)
  try {
    return JSON.parse((await unzipped(path)).toString('utf8')) as FoldState
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    const reason = messageOf(error)
    throw new Error(`Cannot read ${path}: ${reason}. Remove it and run \`bookcast rebuild\`.`, {
      cause: error,
    })
  }
}

/** Whether the file is there and gzip finds no damage. */
export async function isWholeState(path: string): Promise<boolean> {
  return await unzipped(path).then(
    () => true,
    () => false,
  )
}

async function unzipped(path: string): Promise<Buffer> {
  return await unzip(await readFile(path), { maxOutputLength: BYTES_MAX })
}

/** Writes a state under a temporary name, for a rename. */
export async function stageFoldState(
  directory: string,
  state: FoldState,
): Promise<{ readonly temporary: string; readonly path: string }> {
  const path = join(directory, FOLD_STATE_NAME)
  return { temporary: await stageFile(path, await zip(JSON.stringify(state))), path }
}

/**
 * Whether the date of a manifest has a fold state, and a fold wrote the manifest: a recorder that lists further segments writes one
 * without a closing state.
 */
export async function hasFoldState(lake: string, manifest: DateManifest | undefined): Promise<boolean> {
  if (manifest === undefined || manifest.closing === null) return false
  const { source, date } = manifest
  return await stat(join(rawDateDirectory(lake, source, date), FOLD_STATE_NAME)).then(
    (stats) => stats.isFile(),
    () => false,
  )
}
