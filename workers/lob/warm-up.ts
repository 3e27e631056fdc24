// Makes a new thread compile the code of a request, by invented events, so that the first real request is as fast as later ones.
// Its output is discarded.

import { EVENT_ADD, EVENT_CLEAR, PRICE_UNITS_PER_CENT, QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import { CHUNK_BYTES, PARQUET_OUT_ROW_GROUP_ROWS } from '../../shared/limits.ts'
import { SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { OrderBook, type EventColumns } from './order-book.ts'
import { ParquetSnapshotEncoder } from './parquet-snapshot-encoder.ts'
import { TextRowEncoder, type RowFormat } from './row-encoder.ts'
import { ParquetRows } from './snapshot-sink.ts'
import { CsvRowFormat } from './row-format-csv.ts'
import { JsonRowFormat } from './row-format-json.ts'

const EVENTS = 8_000
const LEVELS = 10
const PARQUET_PASSES = 4

/** Replays and encodes a few thousand invented rows in every format. */
export function warmUp(): void {
  const events = madeUpEvents()
  const options = { columns: SNAPSHOT_COLUMNS, levels: LEVELS, nulls: false }
  const formats = [
    new JsonRowFormat({ ...options, isArray: false }),
    new JsonRowFormat({ ...options, isArray: true }),
    new CsvRowFormat(options),
  ]
  for (const format of formats) encodeAll(format, events)
  encodeParquet(events)
}

/** The parquet encoder is fast only after it has encoded some tens of thousands of rows. */
function encodeParquet(events: EventColumns): void {
  const encoder = new ParquetSnapshotEncoder({
    columns: SNAPSHOT_COLUMNS,
    levels: LEVELS,
    marketIds: ['warm-up'],
  })
  const book = new OrderBook()
  const rows = new ParquetRows(encoder, LEVELS)
  for (let pass = 0, seconds = 0; pass < PARQUET_PASSES; pass++) {
    for (let index = 0, tick = 0; index < events.length; tick++, seconds++) {
      index = book.replay(events, index, tick)
      rows.append(seconds, 0, book)
      if (encoder.bufferedRows === PARQUET_OUT_ROW_GROUP_ROWS) encoder.flushRowGroup()
    }
  }
  encoder.finish()
}

function encodeAll(format: RowFormat, events: EventColumns): void {
  const encoder = new TextRowEncoder(format, ['warm-up'])
  const book = new OrderBook()
  for (let index = 0, tick = 0; index < events.length; tick++) {
    index = book.replay(events, index, tick)
    if (encoder.position + encoder.reserveBytes > CHUNK_BYTES) encoder.takeRows()
    encoder.encodeRow(tick, 0, book)
  }
}

function madeUpEvents(): EventColumns {
  const events: EventColumns = {
    length: EVENTS,
    ts: Float64Array.from({ length: EVENTS }, (_, index) => Math.floor(index / 4)),
    event: new Uint8Array(EVENTS).fill(EVENT_ADD),
    side: Uint8Array.from({ length: EVENTS }, (_, index) => index & 1),
    price: Int32Array.from({ length: EVENTS }, (_, index) => {
      const distance = (index * 7919) % 30
      return ((index & 1) === 0 ? 50 - distance : 51 + distance) * PRICE_UNITS_PER_CENT
    }),
    qty: Float64Array.from({ length: EVENTS }, (_, index) => ((index * 31) % 977) * QTY_UNITS_PER_CONTRACT),
  }
  events.event[0] = EVENT_CLEAR
  return events
}
