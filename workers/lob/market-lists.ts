// A cache of the market ids in order-book files, by file, until the file is replaced. It answers a request for a market that no
// file has by checking the files' identities, without reading one. The requests of a thread share the cache. Its memory is
// bounded; the least recently used file is evicted and read again.

import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { BoundedMap } from '../../shared/bounded-map.ts'
import { ApiError } from '../../shared/errors.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { watched } from '../lake/watched-files.ts'

/** The estimated size of the cache: 150 tickers in each of the files that a request may search. */
const LISTS_BYTES_MAX = 16 * 1024 * 1024
/** The size of a list without its ids: path, identity and the map's entry. */
const LIST_BYTES = 512
/** The size of an id without its characters. */
const ID_BYTES = 32

interface MarketList {
  readonly identity: string
  readonly ids: readonly string[]
}

export class MarketLists {
  readonly #lists: BoundedMap<MarketList>

  constructor(bytesMax = LISTS_BYTES_MAX) {
    this.#lists = new BoundedMap(bytesMax)
  }

  /** The estimated memory of all lists. */
  get sizeBytes(): number {
    return this.#lists.weight
  }

  /** The market ids of a file; undefined if they are not cached or the file has been replaced. */
  of(path: string): readonly string[] | undefined {
    const list = this.#lists.get(path)
    if (list === undefined) return undefined
    if (currentIdentity(path) !== list.identity) {
      this.#lists.delete(path)
      return undefined
    }
    this.#lists.renew(path)
    return list.ids
  }

  add(path: string, identity: string, ids: readonly string[]): void {
    const sizeBytes = ids.reduce((sum, id) => sum + id.length + ID_BYTES, LIST_BYTES)
    this.#lists.set(path, { identity, ids }, sizeBytes)
  }
}

function currentIdentity(path: string): string | undefined {
  try {
    return identityOf(watched(basename(path), () => statSync(path, { bigint: true })))
  } catch (error) {
    if (error instanceof ApiError) throw error
    // The caller gets the error when it opens the file.
    return undefined
  }
}
