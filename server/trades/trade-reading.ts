// Reads the trades of raw segments. Only lines that may state a trade or a series are parsed.

import { join } from 'node:path'
import { groupedBy } from '../../shared/grouped-by.ts'
import { rawDateDirectory, rawSegmentOfName } from '../../shared/lake-layout.ts'
import { LOB_SOURCES } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { MS_PER_DAY, NS_PER_MS, addDays, utcDateStartMs } from '../../shared/utc-date.ts'
import type { TradeReader } from '../exchanges/exchange.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { BadLineError } from '../feed/bad-line.ts'
import type { TradeMessage } from '../feed/trade-message.ts'
import { parseSegmentLine } from '../raw/segment-lines.ts'
import type { FramesLine, RestLine, SegmentHeader, SegmentLine } from '../raw/segment-lines.ts'
import { readSegmentTexts } from '../raw/segment-reader.ts'
import { TradeSet } from './trade-set.ts'
import type { SetTrade, TradeSighting } from './trade-set.ts'

const SERIES_MARK = '"event":"series"'
const REST_MARK = '"rest":'
/** Frames of one line are fewer. */
const FRAMES_MAX = 4096
const LAST_HOUR = 23
/** Messages of one trade differ by less: a transaction is final some seconds after the trade that a WebSocket told. */
const EDGE_MS = 600_000

export interface TradeReadingOptions {
  readonly lake: string
  readonly source: LobSource
  /** The names of a date's segments that count. */
  readonly segmentsOf: (date: string) => readonly string[]
  /** The lines of a segment that may have trades, if they are known without reading it. */
  readonly linesOf?: ((name: string) => TradeLines | undefined) | undefined
  readonly signal: AbortSignal
}

export interface TradeLines {
  readonly header: SegmentHeader
  readonly texts: readonly string[]
}

interface LinePlace {
  /** The segment. */
  readonly group: string
  /** Under which the line is filed. */
  readonly hour: number | undefined
  readonly header: SegmentHeader | undefined
}

/** A trade as a message states it, and where the message was found. */
export interface SightedTrade {
  readonly message: TradeMessage
  readonly sighting: TradeSighting
}

/** The trades and series that lines of one hour state. */
export interface HourTrades {
  readonly trades: SightedTrade[]
  /** Series by market id. */
  readonly series: Map<string, string>
}

/** The trades of one UTC date. */
export class DateTrades {
  readonly date: string
  readonly #fromMs: number
  readonly #options: TradeReadingOptions
  readonly #set = new TradeSet()
  readonly #series = new Map<string, string>()
  /** The dates beside it of which its segments have trades too. */
  readonly neighbours = new Set<string>()
  /** Messages of trades that cannot be read, or whose market cannot be filed. */
  badCount = 0

  constructor(date: string, options: TradeReadingOptions) {
    this.date = date
    this.#fromMs = utcDateStartMs(date)!
    this.#options = options
  }

  /**
   * Reads all segments that may have trades of the date: its own, and of the dates beside it the hour at midnight, because lines are
   * filed under the hour that was open when they came.
   * @throws {DamagedSegmentError}
   */
  async read(): Promise<void> {
    const of = (date: string, hour: number): readonly string[] =>
      this.#options.segmentsOf(date).filter((name) => rawSegmentOfName(name)?.hour === hour)
    const [before, after] = [addDays(this.date, -1), addDays(this.date, 1)]
    for (const name of of(before, LAST_HOUR)) await this.add(before, name)
    for (const name of this.#options.segmentsOf(this.date)) await this.add(this.date, name)
    for (const name of of(after, 0)) await this.add(after, name)
  }

  /** Adds the trades of a segment of a date. */
  async add(date: string, name: string): Promise<void> {
    const { lake, source, linesOf, signal } = this.#options
    const { trades } = exchangeOf(source)
    if (trades === undefined) return
    const known = linesOf?.(name)
    const path = join(rawDateDirectory(lake, source, date), name)
    let header = known?.header
    for await (const texts of known === undefined ? readSegmentTexts(path, { signal }) : [known.texts]) {
      for (const text of texts) {
        if (header !== undefined && !hasMark(text, trades)) continue
        const line = parseSegmentLine(text)
        if (line.kind === 'header') header = line.header
        else this.#take(line, trades, { group: name, hour: rawSegmentOfName(name)?.hour, header })
      }
    }
  }

  /** Adds what a recorder has read of an hour (0 to 23) of the date or, at 23, of the date before. */
  addHour({ trades, series }: HourTrades, hour: number): void {
    for (const [id, of] of series) this.#series.set(id, of)
    for (const { message, sighting } of trades)
      if (this.#takes(message, sighting, hour)) this.#set.add(message, sighting)
  }

  /** The trades by series, each in the order of its file. */
  bySeries(): ReadonlyMap<string, readonly SetTrade[]> {
    const seriesOf = (id: string): string =>
      this.#series.get(id) ?? LOB_SOURCES[this.#options.source].seriesOf(id)
    const isFiled = ({ marketId: id }: SetTrade): boolean =>
      Buffer.byteLength(id) <= MARKET_ID_BYTES_MAX && isSeriesName(seriesOf(id))
    const [from, to] = [0, MS_PER_DAY].map((ms) => BigInt(this.#fromMs + ms) * NS_PER_MS)
    const all = this.#set.result().filter(({ ts }) => ts >= from! && ts < to!)
    const filed = all.filter(isFiled)
    this.badCount += all.length - filed.length
    return groupedBy(filed, ({ marketId }) => seriesOf(marketId))
  }

  #take(line: SegmentLine, reader: TradeReader, { group, hour, header }: LinePlace): void {
    if (line.kind === 'series') for (const [id, of] of line.series) this.#series.set(id, of)
    if (line.kind !== 'frames' && line.kind !== 'rest') return
    const onBad = (): void => void this.badCount++
    for (const { message, sighting } of sightedTrades(line, reader, group, onBad)) {
      if (!this.#takes(message, sighting, hour)) continue
      const series = header?.reading?.series
      if (series !== undefined) this.#series.set(message.marketId, series)
      this.#set.add(message, sighting)
    }
  }

  /** Whether a message is of the date, or of a trade that may be. Notes a date beside it whose trades may change. */
  #takes({ ts, isUnique }: TradeMessage, { origin }: TradeSighting, hour: number | undefined): boolean {
    const ms = Number(ts / NS_PER_MS) - this.#fromMs
    const isFirstHalf = ms < MS_PER_DAY / 2
    // Beyond the nearer midnight. Inside the date it is negative.
    const beyondMs = isFirstHalf ? -1 - ms : ms - MS_PER_DAY
    const edgeMs = isUnique ? 0 : EDGE_MS
    if (beyondMs < -edgeMs) return true
    const beside = addDays(this.date, isFirstHalf ? -1 : 1)
    const isFiled = beyondMs >= 0 && beyondMs < MS_PER_DAY && hour === (isFirstHalf ? 0 : LAST_HOUR)
    // A row here and a message there may be one trade.
    const isShared = origin === 'rest' && beyondMs < edgeMs && this.#options.segmentsOf(beside).length > 0
    if (isFiled || isShared) this.neighbours.add(beside)
    return beyondMs < edgeMs
  }
}

/** The trades that a line states, with `group` for a line without a connection. `onBad` is called for each that cannot be read. */
export function* sightedTrades(
  line: Pick<FramesLine, 'kind' | 'recvTs' | 'connection' | 'n' | 'frames'> | RestLine,
  reader: TradeReader,
  group: string,
  onBad: () => void,
): Generator<SightedTrade> {
  const { kind, recvTs, connection, n } = line
  const origin = kind === 'rest' ? 'rest' : connection === undefined ? 'import' : 'ws'
  const frames = kind === 'rest' ? [line.row] : line.frames
  for (const [index, frame] of frames.entries()) {
    let message: TradeMessage | undefined
    try {
      message = kind === 'rest' ? reader.ofRow(frame) : reader.ofFrame(frame)
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error
      onBad()
    }
    const place = n === undefined ? undefined : n * FRAMES_MAX + index
    if (message !== undefined)
      yield { message, sighting: { recvTs, origin, group: connection ?? group, place } }
  }
}

function hasMark(text: string, { mark }: TradeReader): boolean {
  return text.includes(mark) || text.includes(REST_MARK) || text.includes(SERIES_MARK)
}
