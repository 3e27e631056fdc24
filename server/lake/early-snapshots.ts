// Snapshots have no time but their receipt. Where messages of the same strand and date happened after their own receipt,
// the recorder's clock was behind, and a snapshot stands too early by as much: it is put later by that, though not
// behind what its strand says next of the market. All that counts are the messages of a strand and date, so that the
// rows are the same however they came into the lake.

import { EVENT_CLEAR, EVENT_SET } from '../../shared/lob-v1.ts'
import { NS_PER_DAY, NS_PER_HOUR, later } from '../../shared/utc-date.ts'
import type { EventRecords, EventSpill } from './event-spill.ts'
import type { StrandTable } from './record-order.ts'
import type { SeriesRecording } from './series-recording.ts'

/** What is asked of a table for the strands of an hour. */
type ClockTable = Pick<StrandTable, 'strandOf' | 'isNumbered' | 'behindIn'>

/** What one strand says of a market in an hour besides snapshots, by number. */
interface NextWords {
  readonly seqs: bigint[]
  readonly times: bigint[]
}

/**
 * Gives the snapshots among the records `[from, to)` of one market and hour their times in place, and returns where the
 * records end now: those that belong into the next hour are gone (`passOnSnapshots`).
 */
export function delaySnapshots(records: EventRecords, from: number, to: number, clocks: HourClocks): number {
  const isEarly = (record: number): boolean =>
    isSnapshot(records, record) && clocks.behindNs(records.span(record)) > 0n
  let hasEarly = false
  for (let record = from; record < to && !hasEarly; record++) hasEarly = isEarly(record)
  if (!hasEarly) return to
  const words = nextWords(records, from, to, clocks)
  let end = from
  for (let record = from; record < to; record++) {
    if (isEarly(record)) {
      const next = nextTime(words.get(clocks.strandOf(records.span(record))), records.seq(record))
      const right = records.recvTs(record) + clocks.behindNs(records.span(record))
      if (next === undefined && clocks.isPassedOn(right)) continue
      const ts = [next, clocks.lastTs].reduce<bigint>(
        (first, one) => (one !== undefined && one < first ? one : first),
        right,
      )
      if (ts > records.ts(record)) records.move(record, ts)
    }
    if (end !== record) records.copy(end, records, record)
    end++
  }
  return end
}

/** Adds to the hours behind `hours` (since the epoch) the snapshots of these that belong into them. A date keeps its own. */
export function passOnSnapshots(
  recording: SeriesRecording,
  table: ClockTable,
  hours: readonly number[],
): void {
  const spills = hours.map((hour) => recording.hours.get(hour))
  for (const [index, spill] of spills.entries()) {
    const clocks = new HourClocks(table, hours[index]!)
    if (spill !== undefined && !clocks.isLastOfDate) passOn(recording, spill, clocks)
  }
}

function passOn(recording: SeriesRecording, spill: EventSpill, clocks: HourClocks): void {
  /** By market and strand: the latest number of what is no snapshot. */
  const lastSeqs = new Map<string, bigint>()
  const late: { readonly key: string; readonly seq: bigint; readonly add: () => void }[] = []
  const ids = recording.marketIds()
  for (const { records, first, count } of spill.pieces()) {
    for (let record = first; record < first + count; record++) {
      const span = records.span(record)
      const behindNs = clocks.behindNs(span)
      if (behindNs === 0n) continue
      const key = `${records.market(record)} ${clocks.strandOf(span)}`
      const seq = records.seq(record)
      if (!isSnapshot(records, record)) lastSeqs.set(key, later(seq, lastSeqs.get(key)))
      else if (clocks.isPassedOn(records.recvTs(record) + behindNs)) {
        const event = {
          marketId: ids[records.market(record)]!,
          ts: clocks.lastTs + 1n,
          recvTs: records.recvTs(record),
          seq,
          event: records.event(record),
          side: records.side(record),
          price: records.price(record),
          qty: Number(records.qty(record)),
          span,
        }
        late.push({ key, seq, add: () => recording.restore(event) })
      }
    }
  }
  for (const { key, seq, add } of late) if ((lastSeqs.get(key) ?? -1n) < seq) add()
}

/** What is known of the clocks in an hour (counted since the epoch). */
export class HourClocks {
  readonly #table: ClockTable
  readonly #behindOf: (strand: number) => bigint
  readonly #behindNs = new Map<number, bigint>()
  /** The hour's last instant. */
  readonly lastTs: bigint

  constructor(table: ClockTable, hour: number) {
    this.#table = table
    this.#behindOf = table.behindIn(hour)
    this.lastTs = BigInt(hour + 1) * NS_PER_HOUR - 1n
  }

  get isLastOfDate(): boolean {
    return (this.lastTs + 1n) % NS_PER_DAY === 0n
  }

  strandOf(span: number): number {
    return this.#table.strandOf(span)
  }

  behindNs(span: number): bigint {
    const strand = this.#table.strandOf(span)
    let ns = this.#behindNs.get(strand)
    if (ns === undefined) {
      ns = this.#table.isNumbered(strand) ? this.#behindOf(strand) : 0n
      this.#behindNs.set(strand, ns)
    }
    return ns
  }

  /** Whether a snapshot that nothing follows in the hour belongs into the next one. */
  isPassedOn(ts: bigint): boolean {
    return ts > this.lastTs && !this.isLastOfDate
  }
}

function isSnapshot(records: EventRecords, record: number): boolean {
  const event = records.event(record)
  return event === EVENT_CLEAR || event === EVENT_SET
}

function nextWords(
  records: EventRecords,
  from: number,
  to: number,
  clocks: HourClocks,
): ReadonlyMap<number, NextWords> {
  const byStrand = new Map<number, number[]>()
  for (let record = from; record < to; record++) {
    if (isSnapshot(records, record) || clocks.behindNs(records.span(record)) === 0n) continue
    const strand = clocks.strandOf(records.span(record))
    const list = byStrand.get(strand)
    if (list === undefined) byStrand.set(strand, [record])
    else list.push(record)
  }
  const words = new Map<number, NextWords>()
  for (const [strand, list] of byStrand) {
    list.sort((a, b) => Number(records.seq(a) - records.seq(b)))
    const seqs = list.map((record) => records.seq(record))
    words.set(strand, { seqs, times: list.map((record) => records.ts(record)) })
  }
  return words
}

/** When the strand says next what is not before number `seq`. */
function nextTime(words: NextWords | undefined, seq: bigint): bigint | undefined {
  if (words === undefined) return undefined
  let [low, high] = [0, words.seqs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (words.seqs[middle]! < seq) low = middle + 1
    else high = middle
  }
  return words.times[low]
}
