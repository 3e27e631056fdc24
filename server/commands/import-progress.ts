// How far an import has come: a bar on a terminal, one line per step elsewhere.

import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'
import type { LobWriteProgress } from '../lake/lob-recording-writer.ts'
import type { ImportProgress } from '../import/recording-import.ts'

const MIB = 1024 * 1024

export class ImportProgressView implements ImportProgress {
  readonly #output: Writable & { readonly isTTY?: boolean }
  #bar: SingleBar | undefined
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
    this.#step(`waiting for another import into this lake, ${owner}`, undefined)
  }

  onWrite({ series, date, rows, events }: LobWriteProgress): void {
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
