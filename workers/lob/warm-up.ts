// Makes a new thread compile the code of a request, by invented events, so that the first real request is as fast as later ones.
// Its output is discarded.

import { formatNames } from '../../shared/formats.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { EVENT_ADD, EVENT_CLEAR, PRICE_UNITS_PER_CENT, QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import { CHUNK_BYTES } from '../../shared/limits.ts'
import { SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { OrderBook, type EventColumns } from './order-book.ts'
import { planSink, type SinkStream } from './snapshot-sink.ts'

const EVENTS = 8_000
const MARKET = 'warm-up'
const QUERY = {
  source: lobSources()[0],
  market: MARKET,
  series: null,
  dates: [],
  intervalS: 1,
  levels: 10,
  hour: null,
  columns: SNAPSHOT_COLUMNS,
  nulls: false,
  after: null,
  limit: null,
}
const NOWHERE: SinkStream = {
  lacks: (bytes) => bytes > CHUNK_BYTES,
  put() {},
  async write() {},
  async nextChunk() {},
}

/** Replays and encodes a few thousand invented rows in every format. */
export async function warmUp(): Promise<void> {
  const events = madeUpEvents()
  for (const format of formatNames()) {
    // The parquet encoder is fast only after it has encoded some tens of thousands of rows.
    const passes = format === 'parquet' ? 4 : 1
    const sink = planSink({ ...QUERY, format }, [MARKET], 0, false).open(NOWHERE)
    const book = new OrderBook()
    for (let pass = 0, seconds = 0; pass < passes; pass++) {
      for (let index = 0, tick = 0; index < events.length; tick++, seconds++) {
        index = book.replay(events, index, tick)
        if (sink.isFull) await sink.makeRoom()
        sink.row(seconds, 0, book)
      }
    }
    sink.settleRows()
    await sink.finish()
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
