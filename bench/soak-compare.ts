// Compares a lake row by row with the true changes of a fake exchange: every received change has its row with time, side, price and
// quantity; after every row whose book is known, the book is correct; and no message is missing between the first and the last one
// received on a connection.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parquetMetadata, parquetRead } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { EVENT_ADD, EVENT_CLEAR, EVENT_GAP, QTY_UNITS_PER_CONTRACT } from '../shared/lob-v1.ts'
import { ComparedBook, levelOfRow, type SoakTruth } from './soak-truth.ts'

const NS_PER_MICRO = 1000n
const QTY_UNITS = QTY_UNITS_PER_CONTRACT / 100
const DIFFERENCES_TOLD_MAX = 10

export interface SoakComparison {
  readonly rows: number
  readonly changes: number
  readonly gaps: number
  /** Rows that differ from the exchange's change, or after which a book is wrong. */
  readonly differentRows: number
  /** Rows of changes that came so late that the lake has them at their receive time. */
  readonly lateRows: number
  /** Changes without a row between the first and the last received one of a connection. */
  readonly missingRows: number
  /** Changes while the lake did not know the book although its connection was alive. */
  readonly unknownRows: number
  /** By connection: changes sent after the last one in the lake. */
  readonly lostAtEnds: readonly number[]
  /** The first differences, as text. */
  readonly told: readonly string[]
}

interface Row {
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: bigint
  readonly market: number
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: bigint
}

interface Market {
  readonly book: ComparedBook
  /** The last true change applied to the book. */
  change: number
  /** The last row's time. Rows never go back in time, even after a snapshot, which has no time of its own. */
  ts: bigint
}

export class LakeComparison {
  readonly #truth: SoakTruth
  readonly #markets: readonly Market[]
  /** By connection: rows, and the last message that has a row. */
  readonly #heard: { rows: number; lastSeq: number }[]
  readonly #told: string[] = []
  #rows = 0
  #changes = 0
  #gaps = 0
  #different = 0
  #late = 0
  #unknown = 0

  constructor(truth: SoakTruth) {
    this.#truth = truth
    this.#markets = truth.markets.map(() => ({ book: new ComparedBook(), change: -1, ts: 0n }))
    this.#heard = Array.from({ length: truth.connectionCount }, () => ({ rows: 0, lastSeq: 0 }))
  }

  /** Takes the rows of a market in order; rows of one market are consecutive over all its files. */
  take(row: Row): void {
    this.#rows++
    const market = this.#markets[row.market]!
    const { book } = market
    if (row.ts < market.ts) this.#differs(`rows of ${row.market} go back from ${market.ts} to ${row.ts}`)
    if (row.event === EVENT_ADD) this.#takeChange(row, market)
    else if (row.event === EVENT_GAP) {
      this.#gaps++
      book.isKnown = false
    } else if (row.event === EVENT_CLEAR) {
      book.clearRows()
      book.isKnown = true
    } else book.setRow(levelOfRow(row.side, row.price), Number(row.qty) / QTY_UNITS)
    market.ts = row.ts
  }

  result(): SoakComparison {
    const ends = this.#heard.map(({ rows, lastSeq }, connection) => {
      const until = lastSeq === 0 ? 0 : this.#truth.toldUntil(connection, lastSeq)
      return { missing: until - rows, lost: this.#truth.toldUntil(connection) - until }
    })
    return {
      rows: this.#rows,
      changes: this.#changes,
      gaps: this.#gaps,
      differentRows: this.#different,
      lateRows: this.#late,
      missingRows: ends.reduce((sum, { missing }) => sum + Math.abs(missing), 0),
      unknownRows: this.#unknown,
      lostAtEnds: ends.map(({ lost }) => lost),
      told: this.#told,
    }
  }

  #takeChange(row: Row, market: Market): void {
    this.#changes++
    const seq = Number(row.seq)
    const found = this.#truth.changeOf(seq)
    if (found === undefined) {
      this.#differs(`no change had the number ${seq}`)
      return
    }
    const { connection, change } = found
    const heard = this.#heard[connection]!
    heard.rows++
    heard.lastSeq = Math.max(heard.lastSeq, seq)
    const sent = this.#truth.changeAt(change)
    const { book } = market
    const level = levelOfRow(row.side, row.price)
    const delta = Number(row.qty) / QTY_UNITS
    const isSame = sent.market === row.market && sent.level === level && sent.delta === delta
    const sentTs = BigInt(sent.micros) * NS_PER_MICRO
    if (isSame && row.ts !== (sentTs > market.ts ? sentTs : market.ts)) {
      if (row.ts === row.recvTs && row.ts > sentTs) this.#late++
      else this.#differs(`number ${seq} of ${sentTs}, received ${row.recvTs}, is told at ${row.ts}`)
    }
    if (!isSame) {
      this.#differs(
        `number ${seq} was ${JSON.stringify(sent)}, not level ${level} with ${delta} at ${row.ts}`,
      )
      return
    }
    if (change <= market.change) {
      this.#differs(`number ${seq} comes again or too late`)
      return
    }
    this.#advance(row.market, market, change)
    if (!book.isKnown) {
      this.#unknown++
      return
    }
    book.setRow(level, book.rowQuantity(level) + delta)
    if (book.differing > 0) this.#differs(`after number ${seq} ${book.differing} levels of the book differ`)
  }

  #advance(number: number, market: Market, change: number): void {
    while (market.change < change) {
      market.change = this.#truth.nextOf(number, market.change)
      const { level, delta } = this.#truth.changeAt(market.change)
      market.book.addTruth(level, delta)
    }
  }

  #differs(text: string): void {
    this.#different++
    if (this.#told.length < DIFFERENCES_TOLD_MAX) this.#told.push(text)
  }
}

/** Reads every date of every series, and compares it. */
export async function compareLake(lake: string, truth: SoakTruth): Promise<SoakComparison> {
  const comparison = new LakeComparison(truth)
  const numbers = new Map(truth.markets.map((ticker, index) => [ticker, index]))
  const source = join(lake, 'lob', 'source=kalshi')
  for (const series of (await readdir(source)).toSorted()) {
    const names = (await readdir(join(source, series), { recursive: true })).filter((name) =>
      name.endsWith('.parquet'),
    )
    for (const name of names.toSorted())
      await readFileRows(join(source, series, name), numbers, (row) => comparison.take(row))
  }
  return comparison.result()
}

type Values = (number | bigint | string)[]

async function readFileRows(
  path: string,
  numbers: ReadonlyMap<string, number>,
  onRow: (row: Row) => void,
): Promise<void> {
  const { buffer } = new Uint8Array(await readFile(path))
  const metadata = parquetMetadata(buffer)
  let groupStart = 0
  for (const { num_rows: count } of metadata.row_groups) {
    const rowStart = groupStart
    const rowEnd = rowStart + Number(count)
    const columns: Record<string, Values> = {}
    await parquetRead({
      file: buffer,
      metadata,
      compressors,
      rowStart,
      rowEnd,
      onChunk: ({ columnName, columnData, rowStart: at }) => {
        const column = (columns[columnName] ??= [])
        for (let row = 0; row < columnData.length; row++) column[at - rowStart + row] = columnData[row]
      },
    })
    takeRows(columns, numbers, onRow)
    groupStart = rowEnd
  }
}

function takeRows(
  columns: Readonly<Record<string, Values>>,
  numbers: ReadonlyMap<string, number>,
  onRow: (row: Row) => void,
): void {
  const { ts, recv_ts: recvTs, seq, market_id, event, side, price, qty } = columns
  for (let row = 0; row < ts!.length; row++) {
    onRow({
      ts: ts![row] as bigint,
      recvTs: recvTs![row] as bigint,
      seq: seq![row] as bigint,
      market: numbers.get(market_id![row] as string) ?? -1,
      event: event![row] as number,
      side: side![row] as number,
      price: price![row] as number,
      qty: qty![row] as bigint,
    })
  }
}
