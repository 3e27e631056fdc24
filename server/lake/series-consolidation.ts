// Turns the recording of one series into lob.v1 files, hour by hour and date by date. The files are finished and read
// back, but still have their temporary names.

import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { MS_PER_HOUR, NS_PER_DAY, NS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import type { EventSpill } from './event-spill.ts'
import { ExactBook } from './exact-book.ts'
import { HourConsolidation } from './hour-consolidation.ts'
import { LobFileWriter } from './lob-file-writer.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import type { LobRowFigures } from './lob-summary.ts'
import type { SeriesRecording } from './series-recording.ts'

export interface ConsolidationOptions {
  readonly lake: string
  readonly source: LobSource
  /** Events sorted in memory at once. */
  readonly passRowsMax: number
  readonly isSample?: boolean | undefined
  /** The reused row group; its capacity bounds the row groups of the files. */
  readonly group: LobRowGroup
  readonly signal: AbortSignal
  /** Told after each row group. */
  readonly onRows: (date: string, rows: number) => void
  /** Takes over a file as soon as it exists, so that it is discarded when anything fails later. */
  readonly onFile: (writer: LobFileWriter) => void
}

/** A finished file that waits for publication. */
export interface ConsolidatedFile {
  readonly writer: LobFileWriter
  readonly series: string
  readonly date: string
  readonly coversFrom: bigint
  readonly coversTo: bigint
  readonly figures: LobRowFigures
}

export class SeriesConsolidation {
  readonly #recording: SeriesRecording
  readonly #options: ConsolidationOptions
  readonly #hours: HourConsolidation
  readonly #books: readonly ExactBook[]
  readonly #files: ConsolidatedFile[] = []
  #date = ''
  #writer: LobFileWriter | undefined

  constructor(recording: SeriesRecording, options: ConsolidationOptions) {
    this.#recording = recording
    this.#options = options
    const ids = recording.marketIds()
    this.#books = ids.map(() => new ExactBook())
    const { passRowsMax, group } = options
    this.#hours = new HourConsolidation(
      { ids, order: recording.marketOrder(), books: this.#books },
      { passRowsMax, group, write: (rows) => this.#writeRows(rows) },
    )
  }

  /** The series' files, dates ascending. */
  async run(): Promise<readonly ConsolidatedFile[]> {
    const { coversFrom, coversTo, hours } = this.#recording
    if (coversFrom === undefined || coversTo === undefined) return []
    const lastHour = Number(coversTo / NS_PER_HOUR)
    const eventHours = [...hours.keys()].toSorted((a, b) => a - b)
    let next = 0
    for (let hour = Number(coversFrom / NS_PER_HOUR); hour <= lastHour; hour++) {
      if (!this.#books.some((book) => book.isKnown)) {
        // Nothing to carry over: go on where something happens.
        const eventHour = eventHours[next]
        if (eventHour === undefined) break
        hour = eventHour
      }
      if (eventHours[next] === hour) next++
      await this.#writeHour(hour, hours.get(hour))
    }
    await this.#finishFile()
    return this.#files
  }

  async #writeHour(hour: number, spill: EventSpill | undefined): Promise<void> {
    await this.#enterDate(utcDateOf(hour * MS_PER_HOUR))
    await this.#hours.write(hour, spill)
    this.#options.signal.throwIfAborted()
    spill?.drop()
  }

  async #writeRows(group: LobRowGroup): Promise<void> {
    const { lake, source, onFile, onRows, signal } = this.#options
    signal.throwIfAborted()
    if (this.#writer === undefined) {
      this.#writer = await LobFileWriter.open(lobFilePath(lake, source, this.#recording.series, this.#date))
      onFile(this.#writer)
    }
    await this.#writer.writeRowGroup(group)
    onRows(this.#date, group.rows)
  }

  async #enterDate(date: string): Promise<void> {
    if (date === this.#date) return
    await this.#finishFile()
    this.#date = date
  }

  async #finishFile(): Promise<void> {
    const writer = this.#writer
    if (writer === undefined) return
    this.#writer = undefined
    const dayStart = BigInt(Date.parse(`${this.#date}T00:00:00Z`)) * 1_000_000n
    const dayEnd = dayStart + NS_PER_DAY - 1n
    const coversFrom = later(this.#recording.coversFrom!, dayStart)
    const coversTo = earlier(this.#recording.coversTo!, dayEnd)
    const { series } = this.#recording
    const { source, isSample } = this.#options
    const labels = { source, series, date: this.#date, coversFrom, coversTo, isSample }
    this.#files.push({ writer, ...labels, figures: await writer.finish(labels) })
  }
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
