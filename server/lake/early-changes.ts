// Changes that lie in the hour before their own strand's snapshot. A snapshot has no time but its receipt; by a clock that is
// ahead it may stand behind a full hour, before which the changes that follow it by number happened. One recording raises
// them to it; from several files they come together here. They stay where they are, for a book that was known before,
// and follow their snapshot besides: without them it would show a book that was over.

import { EVENT_ADD, EVENT_CLEAR } from '../../shared/lob-v1.ts'
import type { EventRecords, EventSpill } from './event-spill.ts'
import type { StrandTable } from './record-order.ts'
import type { BookEvent, SeriesRecording } from './series-recording.ts'

type Strands = Pick<StrandTable, 'strandOf' | 'isNumbered'>

/** A market's snapshots of one strand in an hour, ascending. */
type Snapshots = { readonly seq: bigint; readonly ts: bigint }[]

/** Adds to each hour the changes of the one before that follow its snapshots by number. */
export function passOnChanges(recording: SeriesRecording, table: Strands): void {
  for (const hour of recording.hoursWithEarlyBooks) {
    const [before, own] = [recording.hours.get(hour - 1), recording.hours.get(hour)]
    if (before === undefined || own === undefined) continue
    const snapshots = snapshotsOf(own, table)
    const late = new Map<string, BookEvent>()
    const ids = recording.marketIds()
    eachRecord(before, (records, record) => {
      if (records.event(record) !== EVENT_ADD) return
      const seq = records.seq(record)
      const key = keyOf(records, record, table)
      const snapshot = snapshots.get(key)?.findLast((one) => one.seq < seq)
      if (snapshot === undefined) return
      late.set(changeOf(key, records, record), {
        marketId: ids[records.market(record)]!,
        ts: snapshot.ts,
        recvTs: records.recvTs(record),
        seq,
        event: EVENT_ADD,
        side: records.side(record),
        price: records.price(record),
        qty: Number(records.qty(record)),
        span: records.span(record),
      })
    })
    if (late.size === 0) continue
    // What the lake has was passed on before.
    eachRecord(own, (records, record) => {
      if (records.event(record) === EVENT_ADD)
        late.delete(changeOf(keyOf(records, record, table), records, record))
    })
    for (const event of late.values()) recording.restore(event)
  }
}

function snapshotsOf(hour: EventSpill, table: Strands): ReadonlyMap<string, Snapshots> {
  const snapshots = new Map<string, Snapshots>()
  eachRecord(hour, (records, record) => {
    if (records.event(record) !== EVENT_CLEAR || !table.isNumbered(table.strandOf(records.span(record))))
      return
    const key = keyOf(records, record, table)
    const list = snapshots.get(key) ?? []
    snapshots.set(key, list)
    list.push({ seq: records.seq(record), ts: records.ts(record) })
  })
  for (const list of snapshots.values()) list.sort((a, b) => Number(a.seq - b.seq))
  return snapshots
}

function keyOf(records: EventRecords, record: number, table: Strands): string {
  return `${records.market(record)} ${table.strandOf(records.span(record))}`
}

function changeOf(key: string, records: EventRecords, record: number): string {
  return `${key} ${records.seq(record)} ${records.side(record)} ${records.price(record)}`
}

function eachRecord(hour: EventSpill, visit: (records: EventRecords, record: number) => void): void {
  for (const { records, first, count } of hour.pieces())
    for (let record = first; record < first + count; record++) visit(records, record)
}
