// Turns the recording of one series into lob.v1 files, hour by hour and date by date. The files are finished and read
// back, but keep their temporary names.

import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MS_PER_HOUR, NS_PER_DAY, NS_PER_HOUR, earlier, later, utcDateOf } from '../../shared/utc-date.ts'
import { DateFigures } from './date-figures.ts'
import type { EventSpill } from './event-spill.ts'
import { writeHour } from './hour-fold.ts'
import type { HourOptions } from './hour-fold.ts'
import { LobFileWriter } from './lob-file-writer.ts'
import type { LobDate } from './lob-footer.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import type { LobRowFigures } from './lob-summary.ts'
import { MarketFold } from './market-fold.ts'
import type { MarketFoldState } from './market-fold.ts'
import type { SeriesRecording } from './series-recording.ts'

/** The chains of a series. Without it there is one chain, which begins with the recording. */
export interface SeriesChains {
  /** Whether a chain's ask prices are still those of the `no` leg. */
  readonly isInverted: (chain: number) => boolean
  /** The markets at the start of the first date, by id. */
  readonly startFolds: ReadonlyMap<string, MarketFoldState>
}

export interface SeriesFoldOptions extends Pick<HourOptions, 'passRowsMax' | 'group' | 'onKnowledge'> {
  readonly lake: string
  readonly source: LobSource
  readonly chains?: SeriesChains | undefined
  readonly isSample?: boolean | undefined
  /** Called when a date's rows are complete; without it no figures are counted. */
  readonly onDate?: DateListener | undefined
  readonly signal: AbortSignal
  /** Called after each row group. */
  readonly onRows?: (date: string, rows: number) => void
  /** Takes over a file as soon as it exists, so that it is discarded if a later step fails. */
  readonly onFile: (writer: LobFileWriter) => void
}

/** A date whose rows are complete. The folds (in the order of `ids`) are in the state at its end, with its figures. */
export interface FoldedSeriesDate extends LobDate {
  readonly ids: readonly string[]
  readonly folds: readonly MarketFold[]
}

export type DateListener = (date: FoldedSeriesDate) => void

/** A finished file that waits for publication. */
export interface FoldedFile extends LobDate {
  readonly writer: LobFileWriter
  readonly figures: LobRowFigures
}

export class SeriesFold {
  readonly #recording: SeriesRecording
  readonly #options: SeriesFoldOptions
  readonly #folds: MarketFold[] = []
  readonly #files: FoldedFile[] = []
  #date = ''
  #writer: LobFileWriter | undefined

  constructor(recording: SeriesRecording, options: SeriesFoldOptions) {
    this.#recording = recording
    this.#options = options
    for (const id of options.chains?.startFolds.keys() ?? []) recording.know(id)
    this.#growFolds()
  }

  /** The series' files, dates ascending. */
  async run(): Promise<readonly FoldedFile[]> {
    const { coversFrom } = this.#recording
    if (coversFrom === undefined) return []
    for (let hour = Number(coversFrom / NS_PER_HOUR); hour <= this.#lastHour; hour++) {
      if (!this.#folds.some((fold) => fold.isKnown)) {
        // No book to carry over: continue with the next hour that has events.
        const from = hour
        hour = Math.min(...[...this.#recording.hours.keys()].filter((key) => key >= from))
        if (hour === Infinity) break
      }
      await this.#enterDate(utcDateOf(hour * MS_PER_HOUR))
      await this.#writeHour(hour, this.#recording.hours.get(hour))
    }
    await this.#finishFile()
    return this.#files
  }

  /** The markets at the end, by id. */
  get endFolds(): ReadonlyMap<string, MarketFoldState> {
    return new Map(this.#recording.marketIds().map((id, index) => [id, this.#folds[index]!.state()]))
  }

  get #lastHour(): number {
    return Number(this.#recording.coversTo! / NS_PER_HOUR)
  }

  async #writeHour(hour: number, spill: EventSpill | undefined): Promise<void> {
    this.#growFolds()
    const markets = {
      ids: this.#recording.marketIds(),
      order: this.#recording.marketOrder(),
      folds: this.#folds,
    }
    const write = (rows: LobRowGroup): Promise<void> => this.#writeRows(rows)
    const isInverted = this.#options.chains?.isInverted
    await writeHour(hour, spill, true, markets, { ...this.#options, write, isInverted })
    this.#options.signal.throwIfAborted()
    spill?.drop()
  }

  async #writeRows(group: LobRowGroup): Promise<void> {
    const { onRows, signal } = this.#options
    signal.throwIfAborted()
    const writer = await this.#openWriter()
    await writer.writeRowGroup(group)
    onRows?.(this.#date, group.rows)
  }

  async #openWriter(): Promise<LobFileWriter> {
    const { lake, source, onFile } = this.#options
    if (this.#writer === undefined) {
      this.#writer = await LobFileWriter.open(lobFilePath(lake, source, this.#recording.series, this.#date))
      onFile(this.#writer)
    }
    return this.#writer
  }

  async #enterDate(date: string): Promise<void> {
    if (date === this.#date) return
    await this.#finishFile()
    this.#date = date
    for (const fold of this.#folds) fold.startDate()
  }

  async #finishFile(): Promise<void> {
    const writer = this.#writer
    if (writer === undefined) return
    this.#writer = undefined
    const { source, isSample, onDate } = this.#options
    const { series } = this.#recording
    const place = { series, date: this.#date, ...this.#coverage() }
    onDate?.({ ...place, ids: this.#recording.marketIds(), folds: this.#folds })
    const labels = { source, ...place, isSample }
    this.#files.push({ writer, ...place, figures: await writer.finish(labels) })
  }

  #coverage(): Pick<LobDate, 'coversFrom' | 'coversTo'> {
    const dayStart = BigInt(Date.parse(`${this.#date}T00:00:00Z`)) * 1_000_000n
    const dayEnd = dayStart + NS_PER_DAY - 1n
    return {
      coversFrom: later(this.#recording.coversFrom!, dayStart),
      coversTo: earlier(this.#recording.coversTo!, dayEnd),
    }
  }

  #growFolds(): void {
    const ids = this.#recording.marketIds()
    while (this.#folds.length < ids.length) {
      const start = this.#options.chains?.startFolds.get(ids[this.#folds.length]!)
      this.#folds.push(
        new MarketFold(start, this.#options.onDate === undefined ? undefined : new DateFigures()),
      )
    }
  }
}
