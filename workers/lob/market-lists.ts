// Which markets the lake's order-book files hold, remembered by file until it is replaced: a name that no file holds is
// then known by looking at the files' identities, without reading one. Shared by the requests of a thread; bounded by the
// memory that the ids take, beyond which the file that was asked for longest ago is forgotten and read again.

import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { BoundedMap } from '../../shared/bounded-map.ts'
import { ApiError } from '../../shared/errors.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { watched } from '../lake/watched-files.ts'

/** Memory that lists may take, by estimate: 150 tickers in each of the files that a request may look into. */
const LISTS_BYTES_MAX = 16 * 1024 * 1024
/** What a list takes besides its ids: path, identity and the map's entry. */
const LIST_BYTES = 512
/** What an id takes besides its characters. */
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

  /** Memory that the lists take, by estimate. */
  get sizeBytes(): number {
    return this.#lists.weight
  }

  /** The market ids of a file; undefined when they are not known or the file is another by now. */
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
    // Whoever opens it will say what is wrong.
    return undefined
  }
}
