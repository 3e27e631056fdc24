// A clock that never waits: a sleep advances its time at once and is recorded.

import type { Clock } from '../../server/tasks/clock.ts'

export class ManualClock implements Clock {
  readonly slept: number[] = []
  #nowMs: number

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    this.slept.push(ms)
    this.#nowMs += ms
  }
}
