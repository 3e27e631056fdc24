// A cache of what was found in files, each entry until its file is replaced. The least recently used entries are evicted.

import { BoundedMap } from './bounded-map.ts'

export class FileFacts<Facts> {
  readonly #entries: BoundedMap<{ readonly identity: string; readonly facts: Facts }>

  /** @param max the maximum total weight of all entries */
  constructor(max: number) {
    this.#entries = new BoundedMap(max)
  }

  /** Undefined if nothing is cached for the file, or if it has another identity now. */
  of(path: string, identity: string): Facts | undefined {
    const entry = this.#entries.get(path)
    if (entry?.identity !== identity) return undefined
    this.#entries.renew(path)
    return entry.facts
  }

  add(path: string, identity: string, facts: Facts, weight = 1): void {
    this.#entries.set(path, { identity, facts }, weight)
  }

  values(): readonly Facts[] {
    return this.#entries.values().map(({ facts }) => facts)
  }
}
