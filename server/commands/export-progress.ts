// How far an export has come: a bar on a terminal, one line a part elsewhere.

import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'

export class ExportProgress {
  readonly #output: Writable & { readonly isTTY?: boolean }
  readonly #count: number
  #bar: SingleBar | undefined
  #done = 0

  /** `total` is the expected sum of all `add` calls, `count` the number of parts. */
  constructor(output: Writable & { readonly isTTY?: boolean }, title: string, count: number, total: number) {
    this.#output = output
    this.#count = count
    if (output.isTTY !== true) return
    const format = `${title} [{bar}] {percentage}% {eta_formatted}`
    this.#bar = new SingleBar({ format, hideCursor: true, stream: output }, Presets.shades_classic)
    this.#bar.start(Math.max(total, 1), 0)
  }

  add(count: number): void {
    this.#bar?.increment(count)
  }

  /** A part is finished. */
  part(text: string): void {
    this.#done += 1
    if (this.#bar === undefined) this.#output.write(`${this.#done}/${this.#count} ${text}\n`)
  }

  stop(): void {
    this.#bar?.stop()
  }
}
