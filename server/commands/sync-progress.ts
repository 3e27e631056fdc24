// How far a synchronization has come: a bar on a terminal, one line per step elsewhere.

import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'
import type { SyncProgress } from '../sync/lake-sync.ts'

const MIB = 1024 * 1024

export class SyncProgressView implements SyncProgress {
  readonly #output: Writable & { readonly isTTY?: boolean }
  #bar: SingleBar | undefined

  constructor(output: Writable & { readonly isTTY?: boolean }) {
    this.#output = output
  }

  onPlan({ objects, sizeBytes }: { readonly objects: number; readonly sizeBytes: number }): void {
    const title = `comparing ${objects} new or changed files, ${(sizeBytes / MIB).toFixed(1)} MiB`
    if (this.#output.isTTY !== true || objects === 0) {
      this.#output.write(`${title}\n`)
      return
    }
    const format = `${title} [{bar}] {percentage}% {eta_formatted}`
    this.#bar = new SingleBar({ format, hideCursor: true, stream: this.#output }, Presets.shades_classic)
    this.#bar.start(Math.max(sizeBytes, 1), 0)
  }

  onBytes(count: number): void {
    this.#bar?.increment(count)
  }

  onObject(key: string, outcome: 'transferred' | 'equal' | 'conflict' | 'sample' | 'failed'): void {
    if (this.#bar === undefined) this.#output.write(`${outcome} ${key}\n`)
  }

  stop(): void {
    this.#bar?.stop()
    this.#bar = undefined
  }
}
