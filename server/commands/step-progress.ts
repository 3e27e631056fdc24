// The progress of a command: a bar on a terminal, one line per step elsewhere.

import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'

type Output = Writable & { readonly isTTY?: boolean }

export class StepProgress {
  readonly #output: Output
  #bar: SingleBar | undefined

  constructor(output: Output) {
    this.#output = output
  }

  /** Begins a step. `total` is the expected sum of all `add` calls. Without it, the step is a line even on a terminal. */
  step(title: string, total?: number): void {
    this.stop()
    if (this.#output.isTTY !== true || total === undefined) return void this.#output.write(`${title}\n`)
    const format = `${title} [{bar}] {percentage}% {eta_formatted}`
    this.#bar = new SingleBar({ format, hideCursor: true, stream: this.#output }, Presets.shades_classic)
    this.#bar.start(Math.max(total, 1), 0)
  }

  add(count: number): void {
    this.#bar?.increment(count)
  }

  /** Sets the sum of the step so far. */
  reach(count: number): void {
    this.#bar?.update(count)
  }

  /** Prints a line about a part of the step, unless a bar is shown. */
  line(text: string): void {
    if (this.#bar === undefined) this.#output.write(`${text}\n`)
  }

  stop(): void {
    this.#bar?.stop()
    this.#bar = undefined
  }
}

export function mib(bytes: number): string {
  return `${(bytes / (1024 * 1024)).toFixed(1)} MiB`
}
