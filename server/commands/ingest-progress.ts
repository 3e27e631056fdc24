// The progress of the sources. On a terminal, each source has a bar with its rows, their rate and the time left; elsewhere,
// each step is a line. Failures are lines in both cases.

import type { Writable } from 'node:stream'
import { MultiBar, Presets, type SingleBar } from 'cli-progress'
import type { IngestEvent } from '../ingest/run-source.ts'
import type { SourceName } from '../ingest/source.ts'
import { duration } from './status-text.ts'

const NAME_WIDTH = 20
const BAR_WIDTH = 24
const FORMAT = '{source} [{bar}] {value}/{total} · {rows} rows · {rate} rows/s · {left} left · {title}'

interface SourceProgress {
  readonly bar: SingleBar
  readonly startMs: number
  rowCount: number
  title: string
}

export class IngestProgressView {
  readonly #output: Writable & { readonly isTTY?: boolean }
  /** A monotonic clock, in milliseconds. */
  readonly #nowMs: () => number
  readonly #progress = new Map<SourceName, SourceProgress>()
  readonly #multiBar: MultiBar | undefined

  constructor(
    output: Writable & { readonly isTTY?: boolean },
    { nowMs = () => performance.now() }: { readonly nowMs?: () => number } = {},
  ) {
    this.#output = output
    this.#nowMs = nowMs
    if (output.isTTY !== true) return
    const bars = { format: FORMAT, hideCursor: true, barsize: BAR_WIDTH, stream: output }
    this.#multiBar = new MultiBar(bars, Presets.shades_classic)
  }

  /** Shows the bar of a source before its first step is done. */
  onStart(source: SourceName): void {
    if (this.#multiBar === undefined || this.#progress.has(source)) return
    const bar = this.#multiBar.create(0, 0, { source: source.padEnd(NAME_WIDTH) })
    this.#progress.set(source, {
      bar,
      startMs: this.#nowMs(),
      rowCount: 0,
      title: 'looking for missing data',
    })
    this.onStep(source, 0, null)
  }

  onEvent(event: IngestEvent): void {
    const { source, scope, title } = event
    if (event.kind === 'failed') this.#line(`${source} ${scope}: ${event.error.message}`)
    else if (event.kind === 'rejected') {
      this.#line(`${source} ${scope}: ${event.problems.length} entries left out: ${event.problems[0]}`)
    } else {
      if (this.#multiBar === undefined) this.#line(`${source} ${title}: ${event.rowCount} rows`)
      const progress = this.#progress.get(source)
      if (progress === undefined) return
      progress.rowCount += event.rowCount
      progress.title = title
    }
  }

  /** @param totalCount the number of steps; null if unknown */
  onStep(source: SourceName, doneCount: number, totalCount: number | null): void {
    const progress = this.#progress.get(source)
    if (progress === undefined) return
    const { bar, startMs, rowCount, title } = progress
    const elapsedMs = Math.max(this.#nowMs() - startMs, 1)
    const leftMs =
      totalCount === null || doneCount === 0 ? null : (elapsedMs / doneCount) * (totalCount - doneCount)
    bar.setTotal(totalCount ?? doneCount)
    bar.update(doneCount, {
      rows: rowCount,
      rate: ((rowCount * 1000) / elapsedMs).toFixed(1),
      left: leftMs === null ? '?' : duration(leftMs),
      title,
    })
  }

  onEnd(source: SourceName, summary: string): void {
    this.#line(`${source}: ${summary}`)
  }

  stop(): void {
    // Prints the lines logged since the last redraw, which would be lost otherwise.
    this.#multiBar?.update()
    this.#multiBar?.stop()
  }

  #line(text: string): void {
    if (this.#multiBar === undefined) this.#output.write(`${text}\n`)
    else this.#multiBar.log(`${text}\n`)
  }
}
