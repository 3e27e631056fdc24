// Words of recorders that a connection had ended, which stand in no file with the messages before them: a file begins with
// such a word, or holds nothing else. Which connection ended, the word does not say. So without numbers nothing goes on
// over it, and the connection that was heard of last before it ended. The ledger keeps them a date (feed-ledger.ts), as
// what they end may be imported later.

import { existsSync, readFileSync } from 'node:fs'
import { stageFile } from '../lake/temporary-file.ts'
import type { Chain } from './strand-chain.ts'

/** A word belongs to a connection heard of so lately. */
const END_NS_MAX = 600_000_000_000n
/** So many words in a date: a recorder that connects in vain every ten seconds writes fewer. */
const ENDS_MAX = 10_000

export class ConnectionEnds {
  static readonly NONE = new ConnectionEnds([])
  /** Receive times, ns, ascending. */
  readonly #times: readonly bigint[]

  constructor(times: Iterable<bigint>) {
    this.#times = ascending(times)
  }

  /** Whether some connection ended from `from` to `to`, ns, both inclusive. */
  isBetween(from: bigint, to: bigint): boolean {
    let [low, high] = [0, this.#times.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#times[middle]! < from) low = middle + 1
      else high = middle
    }
    const first = this.#times[low]
    return first !== undefined && first <= to
  }

  /** Whether one of them may end what was heard of last at `lastRecvTs`. */
  mayEnd(lastRecvTs: bigint): boolean {
    return this.isBetween(lastRecvTs, lastRecvTs + END_NS_MAX)
  }

  /** Ends, at each of them, the chain that was heard of last. */
  endChains(chains: readonly Chain[]): void {
    for (const ts of this.#times) {
      let latest: Chain | undefined
      for (const chain of chains) {
        if (chain.lastRecvTs > ts || ts - chain.lastRecvTs > END_NS_MAX) continue
        if (latest === undefined || chain.lastRecvTs > latest.lastRecvTs) latest = chain
      }
      if (latest !== undefined) latest.isEnded = true
    }
  }
}

/** None where there is no such file. Throws where it is damaged, and says what to do. */
export function readEndsFile(path: string): bigint[] {
  if (!existsSync(path)) return []
  try {
    const written: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!Array.isArray(written)) throw new Error('not a list of times')
    return written.map((ts) => BigInt(String(ts)))
  } catch (error) {
    throw new Error(
      `${path} cannot be read (${error instanceof Error ? error.message : String(error)}); it says when connections ` +
        'had ended, and without it books would go on over that: remove it and import all recordings of the date ' +
        'again with --replace',
      { cause: error },
    )
  }
}

/**
 * Writes what `path` is to hold beside it, and returns where that lies. Throws where the words are more than a recorder can
 * write.
 */
export function stageEndsFile(path: string, times: Iterable<bigint>): string {
  const ends = ascending(times)
  if (ends.length > ENDS_MAX) {
    throw new Error(
      `${path}: more than ${ENDS_MAX} words of a date that a connection had ended, with no message before them in ` +
        'their files: import the files that hold such words with those before them as one file',
    )
  }
  return stageFile(path, JSON.stringify(ends.map(String)))
}

function ascending(times: Iterable<bigint>): bigint[] {
  return [...new Set(times)].toSorted((a, b) => (a < b ? -1 : 1))
}
