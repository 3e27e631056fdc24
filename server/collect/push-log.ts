// Remembers when the lake was pushed to object storage, to tell what has been there for some time. It forgets what a
// later push says better, and everything when the process ends: then rows stay in the store a little longer.

/** Pushes that a collector remembers to know what has long been in object storage. */
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

  /** An instant before which every file of the lake was in object storage `ageMs` ago; null when there is none. */
  pushedBefore(nowMs: number, ageMs: number): number | null {
    const at = this.#pushes.findLastIndex(({ endMs }) => endMs <= nowMs - ageMs)
    if (at === -1) return null
    this.#pushes = this.#pushes.slice(at)
    return this.#pushes[0]?.startMs ?? null
  }
}
