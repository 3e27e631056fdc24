// Remembers the pushes of the lake to object storage, to know how long files have been there. A push that later ones make redundant
// is dropped. The log ends with the process: then rows stay in the store a little longer.

/** Pushes that a collector remembers. */
const SYNC_PUSHES_REMEMBERED_MAX = 4_096

interface Push {
  readonly startMs: number
  readonly endMs: number
}

export class PushLog {
  /** Oldest first. */
  #pushes: Push[] = []

  /** Notes a push without failures. */
  note(startMs: number, endMs: number): void {
    if (this.#pushes.length < SYNC_PUSHES_REMEMBERED_MAX) this.#pushes.push({ startMs, endMs })
  }

  /** An instant before which every file of the lake was in object storage `ageMs` ago; null if there is none. */
  pushedBefore(nowMs: number, ageMs: number): number | null {
    const at = this.#pushes.findLastIndex(({ endMs }) => endMs <= nowMs - ageMs)
    if (at === -1) return null
    this.#pushes = this.#pushes.slice(at)
    return this.#pushes[0]?.startMs ?? null
  }
}
