// Turns the recording of one series into lob.v1 files: hour by hour, each hour sorted by market in as many passes as
// memory demands, with a keyframe of every book that is known when the hour begins. The files are finished and read back,
// but still have their temporary names.

import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { EVENT_CLEAR, EVENT_SET, SIDE_BID } from '../../shared/lob-v1.ts'
import { MS_PER_HOUR, NS_PER_DAY, NS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { EventRecords, RECORD_BYTES } from './event-spill.ts'
import type { EventSpill } from './event-spill.ts'
import { ExactBook } from './exact-book.ts'
import { LobFileWriter } from './lob-file-writer.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import type { LobRowFigures } from './lob-summary.ts'
import type { SeriesRecording } from './series-recording.ts'

// Keyframes have no message of their own, hence no sequence number.
const KEYFRAME_SEQ = 0n

export interface ConsolidationOptions {
  readonly lake: string
  readonly source: LobSource
  /** Events sorted in memory at once. */
  readonly passRowsMax: number
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
  readonly #ids: readonly string[]
  readonly #order: readonly number[]
  readonly #books: readonly ExactBook[]
  readonly #files: ConsolidatedFile[] = []
  #date = ''
  #writer: LobFileWriter | undefined

  constructor(recording: SeriesRecording, options: ConsolidationOptions) {
    this.#recording = recording
    this.#options = options
    this.#ids = recording.marketIds()
    this.#order = recording.marketOrder()
    this.#books = this.#ids.map(() => new ExactBook())
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
    const active = this.#order.filter((market) => spill?.counts.has(market) || this.#books[market]!.isKnown)
    for (let from = 0; from < active.length;) {
      const pass = passOf(active, from, spill, this.#options.passRowsMax)
      if (pass.markets.length === 1 && pass.rows > this.#options.passRowsMax) {
        await this.#writeStreamed(hour, pass.markets[0]!, spill!)
      } else {
        await this.#writeSorted(hour, pass, spill)
      }
      from += pass.markets.length
    }
    await this.#flush()
    spill?.drop()
  }

  async #writeSorted(hour: number, pass: Pass, spill: EventSpill | undefined): Promise<void> {
    const sorted = sortRecords(pass, spill)
    let record = 0
    for (const market of pass.markets) {
      await this.#writeKeyframe(hour, market)
      const end = record + (spill?.counts.get(market) ?? 0)
      for (; record < end; record++) {
        if (this.#options.group.isFull) await this.#flushWithin(market)
        this.#addRecord(market, sorted, record)
      }
    }
  }

  // One market that alone exceeds what may be sorted is in order already: its records are picked as they come.
  async #writeStreamed(hour: number, market: number, spill: EventSpill): Promise<void> {
    await this.#writeKeyframe(hour, market)
    for (const { records, count } of spill.pieces()) {
      for (let record = 0; record < count; record++) {
        if (records.market(record) !== market) continue
        if (this.#options.group.isFull) await this.#flushWithin(market)
        this.#addRecord(market, records, record)
      }
    }
  }

  #addRecord(market: number, records: EventRecords, record: number): void {
    const [event, side, price] = [records.event(record), records.side(record), records.price(record)]
    const [ts, qty] = [records.ts(record), records.qty(record)]
    try {
      this.#books[market]!.apply(event, side, price, Number(qty))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new Error(`${this.#ids[market]} at ${ts} ns: ${reason}`, { cause: error })
    }
    this.#options.group.add(ts, records.recvTs(record), records.seq(record), event, side, price, qty)
  }

  async #writeKeyframe(hour: number, market: number): Promise<void> {
    const { group } = this.#options
    if (group.isFull) await this.#flush()
    group.startMarket(this.#ids[market]!)
    const book = this.#books[market]!
    if (!book.isKnown) return
    const ts = BigInt(hour) * NS_PER_HOUR
    group.add(ts, ts, KEYFRAME_SEQ, EVENT_CLEAR, SIDE_BID, 0, 0n)
    for (const { side, price, qty } of book.levels()) {
      if (group.isFull) await this.#flushWithin(market)
      group.add(ts, ts, KEYFRAME_SEQ, EVENT_SET, side, price, BigInt(qty))
    }
  }

  async #flushWithin(market: number): Promise<void> {
    await this.#flush()
    this.#options.group.startMarket(this.#ids[market]!)
  }

  async #flush(): Promise<void> {
    const { group, lake, source, onFile, onRows, signal } = this.#options
    signal.throwIfAborted()
    if (group.rows > 0) {
      if (this.#writer === undefined) {
        this.#writer = await LobFileWriter.open(lobFilePath(lake, source, this.#recording.series, this.#date))
        onFile(this.#writer)
      }
      await this.#writer.writeRowGroup(group)
      onRows(this.#date, group.rows)
    }
    group.clear()
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
    const labels = { source: this.#options.source, series, date: this.#date, coversFrom, coversTo }
    this.#files.push({ writer, ...labels, figures: await writer.finish(labels) })
  }
}

interface Pass {
  /** Market indexes in file order. */
  readonly markets: readonly number[]
  readonly rows: number
}

// As many of the next markets as fit into one pass, at least one.
function passOf(
  active: readonly number[],
  from: number,
  spill: EventSpill | undefined,
  rowsMax: number,
): Pass {
  let rows = spill?.counts.get(active[from]!) ?? 0
  let to = from + 1
  for (; to < active.length; to++) {
    const more = spill?.counts.get(active[to]!) ?? 0
    if (rows + more > rowsMax) break
    rows += more
  }
  return { markets: active.slice(from, to), rows }
}

// A counting sort: every market's place is known from its count, and arrival order within a market is kept.
function sortRecords({ markets, rows }: Pass, spill: EventSpill | undefined): EventRecords {
  const sorted = new EventRecords(new ArrayBuffer(rows * RECORD_BYTES))
  if (spill === undefined || rows === 0) return sorted
  const places = new Map<number, number>()
  let place = 0
  for (const market of markets) {
    places.set(market, place)
    place += spill.counts.get(market) ?? 0
  }
  for (const { records, count } of spill.pieces()) {
    for (let record = 0; record < count; record++) {
      const market = records.market(record)
      const to = places.get(market)
      if (to === undefined) continue
      sorted.copy(to, records, record)
      places.set(market, to + 1)
    }
  }
  return sorted
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
