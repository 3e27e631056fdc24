// Warnings that come again with every poll: told at once the first time, then once an hour with how often they came. One
// that stayed away for an hour counts as new.

import { BoundedMap } from '../../shared/bounded-map.ts'

const SUMMARY_MS = 60 * 60 * 1000
/** Different warnings remembered; beyond them the longest unheard one is forgotten, and counts as new. */
const WARNINGS_MAX = 1_000

interface Heard {
  toldAtMs: number
  heardAtMs: number
  /** Times since it was told. */
  count: number
}

export class RepeatedWarnings {
  readonly #heard = new BoundedMap<Heard>(WARNINGS_MAX)

  /** How many times a warning stands for that is to be told now, or null when it is not: it was told not long ago. */
  timesToTell(key: string, nowMs: number): number | null {
    const heard = this.#heard.get(key)
    if (heard === undefined || nowMs - heard.heardAtMs >= SUMMARY_MS) {
      this.#heard.set(key, { toldAtMs: nowMs, heardAtMs: nowMs, count: 0 })
      return 1
    }
    const count = heard.count + 1
    const isDue = nowMs - heard.toldAtMs >= SUMMARY_MS
    const toldAtMs = isDue ? nowMs : heard.toldAtMs
    this.#heard.set(key, { toldAtMs, heardAtMs: nowMs, count: isDue ? 0 : count })
    return isDue ? count : null
  }
}

/** A warning's text without what differs from time to time: instants, waits and counts, but no names. */
export function warningKey(...parts: readonly (string | number | null)[]): string {
  return parts
    .join(' ')
    .replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'instant')
    .replaceAll(/\b\d+ (?=(?:ms|s|min|minutes|hours|reports|of)\b)/g, '')
}
