// How far an import or a rebuild has come: a bar on a terminal, one line a step elsewhere.

import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'
import type { FoldWriting } from '../fold/fold-order.ts'
import type { ImportProgress } from '../import/recording-import.ts'

const MIB = 1024 * 1024

export class ImportProgressView implements ImportProgress {
  readonly #output: Writable & { readonly isTTY?: boolean }
  #bar: SingleBar | undefined
  #date = ''
  #file = ''

  constructor(output: Writable & { readonly isTTY?: boolean }) {
    this.#output = output
  }

  onInput(name: string, sizeBytes: number | undefined): void {
    const size = sizeBytes === undefined ? '' : ` (${(sizeBytes / MIB).toFixed(1)} MiB)`
    this.#step(`reading ${name}${size}`, sizeBytes)
  }

  onBytes(count: number): void {
    this.#bar?.increment(count)
  }

  onWait(owner: string): void {
    this.#step(`waiting for ${owner}, which writes to this lake`, undefined)
  }

  onSegment(date: string, count: number): void {
    if (date !== this.#date) {
      this.#date = date
      this.#step(`folding ${date} (${count} raw segment${count === 1 ? '' : 's'})`, count)
    }
    this.#bar?.increment(1)
  }

  onWrite({ series, date, rows, events }: FoldWriting): void {
    const file = `${series} ${date}`
    if (file !== this.#file) {
      this.#file = file
      this.#step(`writing ${file}`, events)
    }
    // Keyframes come on top of the events, so the count may pass the expectation: the bar then stays full.
    this.#bar?.update(Math.min(rows, events))
  }

  stop(): void {
    this.#bar?.stop()
    this.#bar = undefined
  }

  #step(title: string, total: number | undefined): void {
    this.stop()
    if (this.#output.isTTY !== true || total === undefined) {
      this.#output.write(`${title}\n`)
      return
    }
    this.#bar = new SingleBar(
      { format: `${title} [{bar}] {percentage}%`, hideCursor: true, stream: this.#output },
      Presets.shades_classic,
    )
    this.#bar.start(total, 0)
  }
}
