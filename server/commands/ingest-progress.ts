// How far the sources have come: a bar for each on a terminal, with its rows, their rate and the time left; one line per
// step elsewhere. Failures are lines in both.

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

export interface IngestProgressOptions {
  /** Milliseconds of any clock that does not go back. */
  readonly nowMs?: () => number
}

export class IngestProgressView {
  readonly #output: Writable & { readonly isTTY?: boolean }
  readonly #nowMs: () => number
  readonly #progress = new Map<SourceName, SourceProgress>()
  readonly #multiBar: MultiBar | undefined

  constructor(output: Writable & { readonly isTTY?: boolean }, options: IngestProgressOptions = {}) {
    this.#output = output
    this.#nowMs = options.nowMs ?? (() => performance.now())
    if (output.isTTY !== true) return
    const bars = { format: FORMAT, hideCursor: true, barsize: BAR_WIDTH, stream: output }
    this.#multiBar = new MultiBar(bars, Presets.shades_classic)
  }

  /** A source begins: its bar is there before its first step is done. */
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

  /** Steps done so far and, where it is known, of how many. */
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
    // Lines since the last redraw would be lost.
    this.#multiBar?.update()
    this.#multiBar?.stop()
  }

  #line(text: string): void {
    if (this.#multiBar === undefined) this.#output.write(`${text}\n`)
    else this.#multiBar.log(`${text}\n`)
  }
}
