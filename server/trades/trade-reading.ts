// Reads the trades of raw segments. Only lines that may state a trade or a series are parsed.

import { join } from 'node:path'
import { rawDateDirectory, rawSegmentOfName } from '../../shared/lake-layout.ts'
import { LOB_SOURCES } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { TradeOrigin } from '../../shared/trades-v1.ts'
import { MS_PER_DAY, NS_PER_MS, addDays, utcDateStartMs } from '../../shared/utc-date.ts'
import type { TradeReader } from '../exchanges/exchange.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { BadLineError } from '../feed/bad-line.ts'
import { isMarketId } from '../feed/market-id.ts'
import type { TradeMessage } from '../feed/trade-message.ts'
import { headerText, parseSegmentLine } from '../raw/segment-lines.ts'
import type { FramesLine, SegmentHeader, SegmentLine, SeriesLine } from '../raw/segment-lines.ts'
import { readSegmentTexts } from '../raw/segment-reader.ts'
import type { TradeList } from './trade-rows.ts'
import { TradeSet } from './trade-set.ts'

const SERIES_MARK = '"event":"series"'
const REST_MARK = '"rest":'
/** More than the frames of any line. */
const FRAMES_MAX = 4096
const LAST_HOUR = 23
/** Messages of one trade differ by less: a transaction is final some seconds after the WebSocket reported the trade. */
const EDGE_MS = 600_000

// No names of series.
const OUTSIDE = ' outside'
const UNFILED = ' unfiled'

export interface TradeReadingOptions {
  readonly lake: string
  readonly source: LobSource
  /** The names of a date's valid segments. */
  readonly segmentsOf: (date: string) => readonly string[]
  /** The lines of a segment that may have trades, if they are known without reading it. */
  readonly linesOf?: ((name: string) => TradeLines | undefined) | undefined
  readonly signal: AbortSignal
}

export interface TradeLines {
  /** Undefined if it is the first of the texts. */
  readonly header?: SegmentHeader | undefined
  readonly texts: readonly string[]
}

/** Of a segment: its header and the lines that a neighbouring date needs, because their trades are of it or may be. */
export interface MidnightLines {
  readonly name: string
  readonly texts: readonly string[]
}

/** A line, or the recorder's form of a line that is not in a segment yet. */
type TradeLine =
  | Exclude<SegmentLine, FramesLine | SeriesLine>
  | Pick<FramesLine, 'kind' | 'recvTs' | 'connection' | 'n' | 'frames'>
  | Pick<SeriesLine, 'kind' | 'series'>

interface LinePlace {
  /** The segment. */
  readonly group: string
  /** The hour under which the line is stored. */
  readonly hour: number | undefined
  readonly header: SegmentHeader | undefined
}

/** The trades of one UTC date. */
export class DateTrades {
  readonly date: string
  readonly #fromMs: number
  readonly #options: TradeReadingOptions
  readonly #set: TradeSet
  /** By market, as recordings state it. */
  readonly #series = new Map<string, string>()
  /** By market, that for which rows were fetched: it may have had another name on this date. */
  readonly #fetchedFor = new Map<string, string>()
  /** The neighbouring dates whose trades are in its segments too. */
  readonly neighbours = new Set<string>()
  /** Of the segments of the date. */
  readonly midnight: MidnightLines[] = []
  /** Messages of trades that cannot be read, or whose market cannot be stored. */
  badCount = 0

  constructor(date: string, options: TradeReadingOptions) {
    this.date = date
    this.#fromMs = utcDateStartMs(date)!
    this.#set = new TradeSet(BigInt(this.#fromMs) * NS_PER_MS)
    this.#options = options
  }

  /**
   * Reads all segments that may have trades of the date: its own, and the hour at midnight of the neighbouring dates, because lines
   * are stored under the hour that was open when they arrived. Its own are read last: what they say of a market's series counts.
   * @throws {DamagedSegmentError}
   */
  async read(): Promise<void> {
    const of = (date: string, hour: number): readonly string[] =>
      this.#options.segmentsOf(date).filter((name) => rawSegmentOfName(name)?.hour === hour)
    const [before, after] = [addDays(this.date, -1), addDays(this.date, 1)]
    for (const name of of(before, LAST_HOUR)) await this.add(before, name)
    for (const name of of(after, 0)) await this.add(after, name)
    for (const name of this.#options.segmentsOf(this.date)) await this.add(this.date, name)
  }

  /** Adds the trades of a segment of a date. */
  async add(date: string, name: string): Promise<void> {
    const { lake, source, linesOf, signal } = this.#options
    const { trades } = exchangeOf(source)
    if (trades === undefined) return
    const known = linesOf?.(name)
    const path = join(rawDateDirectory(lake, source, date), name)
    let header = known?.header
    const series: string[] = []
    const near: string[] = []
    for await (const texts of known === undefined ? readSegmentTexts(path, { signal }) : [known.texts]) {
      for (const text of texts) {
        if (header !== undefined && !hasMark(text, trades)) continue
        const line = parseSegmentLine(text)
        if (line.kind === 'header') header = line.header
        else if (this.take(line, { group: name, hour: rawSegmentOfName(name)?.hour, header }))
          near.push(copyOf(text))
        else if (line.kind === 'series') series.push(copyOf(text))
      }
    }
    if (date === this.date && header !== undefined && near.length > 0)
      this.midnight.push({ name, texts: [headerText(header), ...series, ...near] })
  }

  /** The trades before an instant, by series, each in file order. */
  bySeries(toMs = Infinity): ReadonlyMap<string, TradeList> {
    const end = Math.min(toMs - this.#fromMs, MS_PER_DAY) * Number(NS_PER_MS)
    const lists = this.#set
      .result()
      .groupedBy((id, ns) => (ns < 0 || ns >= end ? OUTSIDE : this.#seriesOf(id)))
    this.badCount += lists.get(UNFILED)?.length ?? 0
    for (const key of [OUTSIDE, UNFILED]) lists.delete(key)
    return lists
  }

  #seriesOf(id: string): string {
    const stated = this.#series.get(id) ?? this.#fetchedFor.get(id)
    const series = stated ?? LOB_SOURCES[this.#options.source].seriesOf(id)
    return isMarketId(id) && isSeriesName(series) ? series : UNFILED
  }

  /** Adds the trades or the series that a line states. Returns whether a neighbouring date needs the line too. */
  take(line: TradeLine, { group, hour, header }: LinePlace): boolean {
    if (line.kind === 'series') for (const [id, of] of line.series) this.#series.set(id, of)
    const reader = exchangeOf(this.#options.source).trades
    if (reader === undefined || (line.kind !== 'frames' && line.kind !== 'rest')) return false
    let isNear = false
    const { kind, recvTs, connection, n } = line
    const origin = kind === 'rest' ? 'rest' : connection === undefined ? 'import' : 'ws'
    for (const [index, frame] of (kind === 'rest' ? [line.row] : line.frames).entries()) {
      const message = this.#messageOf(() => (kind === 'rest' ? reader.ofRow(frame) : reader.ofFrame(frame)))
      const place = n === undefined ? undefined : n * FRAMES_MAX + index
      if (message === undefined) continue
      const { takes, isBeside } = this.#takes(message, origin, hour)
      isNear ||= isBeside
      if (!takes) continue
      const series = header?.reading?.series
      if (series !== undefined) this.#noteSeries(message, series, kind)
      this.#set.add(message, { recvTs, origin, group: connection ?? group, place })
    }
    return isNear
  }

  /** A message of a neighbouring date says nothing: a series may have got another name at midnight. */
  #noteSeries({ marketId: id, ts }: TradeMessage, series: string, kind: 'frames' | 'rest'): void {
    const ms = Number(ts / NS_PER_MS) - this.#fromMs
    if (ms < 0 || ms >= MS_PER_DAY) return
    if (kind === 'frames') this.#series.set(id, series)
    // Of several, the first by name: no order of the segments may decide.
    else if (series < (this.#fetchedFor.get(id) ?? `${series}.`)) this.#fetchedFor.set(id, series)
  }

  #messageOf(read: () => TradeMessage | undefined): TradeMessage | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error
      this.badCount++
      return undefined
    }
  }

  /**
   * Whether a message is of the date, or may be of one of its trades, and whether a neighbouring date reads it too. Records a
   * neighbouring date whose trades may change.
   */
  #takes(
    { ts, isUnique }: TradeMessage,
    origin: TradeOrigin,
    hour: number | undefined,
  ): { readonly takes: boolean; readonly isBeside: boolean } {
    const ms = Number(ts / NS_PER_MS) - this.#fromMs
    const isFirstHalf = ms < MS_PER_DAY / 2
    // Time beyond the nearer midnight; negative inside the date.
    const beyondMs = isFirstHalf ? -1 - ms : ms - MS_PER_DAY
    const edgeMs = isUnique ? 0 : EDGE_MS
    const takes = beyondMs < edgeMs
    const isBeside = beyondMs >= -edgeMs && beyondMs < MS_PER_DAY && hour === (isFirstHalf ? 0 : LAST_HOUR)
    const beside = addDays(this.date, isFirstHalf ? -1 : 1)
    // A REST row here and a message there may be one trade.
    const isShared =
      origin === 'rest' && beyondMs >= -edgeMs && takes && this.#options.segmentsOf(beside).length > 0
    if ((isBeside && beyondMs >= 0) || isShared) this.neighbours.add(beside)
    return { takes, isBeside }
  }
}

/** The text of a line may be a slice of a longer one, which would stay with it. */
function copyOf(text: string): string {
  return Buffer.from(text).toString('utf8')
}

function hasMark(text: string, { mark }: TradeReader): boolean {
  return text.includes(mark) || text.includes(REST_MARK) || text.includes(SERIES_MARK)
}
