// How far the sources have come: a bar for each on a terminal, one line per step elsewhere. Failures are lines in both.

import type { Writable } from 'node:stream'
import { MultiBar, Presets, type SingleBar } from 'cli-progress'
import type { IngestEvent } from '../ingest/run-source.ts'
import type { SourceName } from '../ingest/source.ts'

const NAME_WIDTH = 20

export class IngestProgressView {
  readonly #output: Writable & { readonly isTTY?: boolean }
  readonly #bars = new Map<SourceName, SingleBar>()
  readonly #multiBar: MultiBar | undefined

  constructor(output: Writable & { readonly isTTY?: boolean }) {
    this.#output = output
    if (output.isTTY !== true) return
    const format = `{source} [{bar}] {value}/{total} {title}`
    this.#multiBar = new MultiBar({ format, hideCursor: true, stream: output }, Presets.shades_classic)
  }

  onEvent(event: IngestEvent): void {
    const { source, scope, title } = event
    if (event.kind === 'failed') this.#line(`${source} ${scope}: ${event.error.message}`)
    else if (event.kind === 'rejected') {
      this.#line(`${source} ${scope}: ${event.problems.length} entries left out: ${event.problems[0]}`)
    } else if (this.#multiBar === undefined) this.#line(`${source} ${title}: ${event.rowCount} rows`)
    else this.#bars.get(source)?.update({ title })
  }

  onStep(source: SourceName, doneCount: number, totalCount: number | null): void {
    if (this.#multiBar === undefined) return
    const total = totalCount ?? doneCount
    const known = this.#bars.get(source)
    const bar = known ?? this.#multiBar.create(total, 0, { source: source.padEnd(NAME_WIDTH), title: '' })
    this.#bars.set(source, bar)
    bar.setTotal(total)
    bar.update(doneCount)
  }

  onEnd(source: SourceName, summary: string): void {
    this.#line(`${source}: ${summary}`)
  }

  stop(): void {
    this.#multiBar?.stop()
  }

  #line(text: string): void {
    if (this.#multiBar === undefined) this.#output.write(`${text}\n`)
    else this.#multiBar.log(`${text}\n`)
  }
}
