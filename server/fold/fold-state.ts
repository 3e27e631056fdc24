// What the fold of a date leaves for its neighbours, beside the raw segments: the chains of the date, which of them go on after
// midnight, and their books then. Gzip of one JSON document.

import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { isErrno } from '../../shared/errno.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import { stageFile } from '../lake/temporary-file.ts'
import type { ChainOutline } from './chain-outline.ts'

const [zip, unzip] = [promisify(gzip), promisify(gunzip)]
export const FOLD_STATE_NAME = 'fold.json.gz'
/** Larger ones are none of ours. */
const BYTES_MAX = 1024 * 1024 * 1024

/** A market that chains know at midnight: the serving one first, then in the order in which they came to know it. */
export interface ClosingMarket {
  readonly id: string
  readonly series: string
  readonly books: readonly { readonly chain: number; readonly levels: readonly BookLevel[] }[]
}

export interface FoldState {
  readonly chains: readonly ChainOutline[]
  /** Chains that go on after midnight, ascending. */
  readonly continued: readonly number[]
  readonly closing: readonly ClosingMarket[]
  /** Markets that each continued chain follows, with their series. */
  readonly followed: readonly (readonly [
    chain: number,
    markets: readonly (readonly [id: string, series: string])[],
  ])[]
  /** Digest of what it began with: the date before decides it. */
  readonly opening: string
}

/** A digest of plain data. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
}

/** Undefined where there is none. Rejects with an error that names a file which cannot be read. */
export async function readFoldState(directory: string): Promise<FoldState | undefined> {
  const path = join(directory, FOLD_STATE_NAME)
  try {
    const text = await unzip(await readFile(path), { maxOutputLength: BYTES_MAX })
    return JSON.parse(text.toString('utf8')) as FoldState
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`Cannot read ${path}: ${reason}. Remove it and run \`bookcast rebuild\`.`, {
      cause: error,
    })
  }
}

/** Writes a state beside the one that it replaces, for a rename. */
export async function stageFoldState(
  directory: string,
  state: FoldState,
): Promise<{ readonly temporary: string; readonly path: string }> {
  const path = join(directory, FOLD_STATE_NAME)
  return { temporary: stageFile(path, await zip(JSON.stringify(state))), path }
}

/** Whether the date has a state; whether it can be read shows when it is. */
export async function hasFoldState(directory: string): Promise<boolean> {
  return await stat(join(directory, FOLD_STATE_NAME)).then(
    (stats) => stats.isFile(),
    () => false,
  )
}
