// Drives the import's parts in tests: decoders into an array of short texts, and whole imports into a fresh lake.

import { Readable } from 'node:stream'
import type { BookEventSink, FeedDecoder } from '../../server/feed/feed-decoder.ts'
import { FeedLedger } from '../../server/import/feed-ledger.ts'
import { FeedSpans } from '../../server/feed/feed-spans.ts'
import { ImportTally } from '../../server/feed/import-tally.ts'
import { KalshiDecoder } from '../../server/exchanges/kalshi/decoder.ts'
import { LakeMerge } from '../../server/import/lake-merge.ts'
import { PolymarketDecoder } from '../../server/exchanges/polymarket/decoder.ts'
import { importRecordings } from '../../server/import/recording-import.ts'
import type { ImportOptions, ImportResult } from '../../server/import/recording-import.ts'
import { parseRecordedLine } from '../../server/import/recorded-message.ts'
import { HourConsolidation } from '../../server/lake/hour-consolidation.ts'
import { HourEvidence } from '../../server/lake/lob-evidence.ts'
import { LobRowGroup } from '../../server/lake/lob-row-group.ts'
import { MarketFold, NO_SEQ } from '../../server/lake/market-fold.ts'
import { SeriesRecording } from '../../server/lake/series-recording.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { utcDateOf } from '../../shared/utc-date.ts'

const EVENT_NAMES = ['clear', 'set', 'add', 'gap']

export class RecordingSink implements BookEventSink {
  readonly events: BookEvent[] = []
  readonly series: string[] = []
  readonly covered = new Map<string, bigint>()

  append(series: string, event: BookEvent): void {
    this.events.push(event)
    this.series.push(series)
  }

  /** `ms market event side price qty`, the time in ms, price in 1/10000 dollar, quantity in contracts. */
  texts(): string[] {
    return this.events.map(({ marketId, ts, event, side, price, qty }) => {
      const level = event === 1 || event === 2 ? ` ${side === 0 ? 'bid' : 'ask'} ${price} ${qty / 1e6}` : ''
      return `${millisecondText(ts)} ${marketId} ${EVENT_NAMES[event]}${level}`
    })
  }
}

function millisecondText(ts: bigint): string {
  const fraction = String(ts % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '')
  return fraction === '' ? String(ts / 1_000_000n) : `${ts / 1_000_000n}.${fraction}`
}

export interface DecoderHarness {
  readonly decoder: FeedDecoder
  readonly sink: RecordingSink
  readonly tally: ImportTally
  /** Feeds frames (objects) or lines (strings); a list is one message of several frames. */
  feed(...items: (object | string)[]): DecoderHarness
  /** Ends the file and begins another, `another file`. */
  nextFile(): DecoderHarness
  /** Ends the recording and gives its rows as texts, in the order of their times. */
  done(): Promise<string[]>
}

export function decoderHarness(
  source: LobSource,
  options: { series?: string; useYesPrice?: boolean } = {},
): DecoderHarness {
  const sink = new RecordingSink()
  const tally = new ImportTally()
  const spans = new FeedSpans({ partsAtSilence: true })
  const common = { sink, spans, tally, series: options.series }
  const decoder =
    source === 'kalshi'
      ? new KalshiDecoder({ ...common, useYesPrice: options.useYesPrice ?? false })
      : new PolymarketDecoder(common)
  decoder.startFile('the recording')
  const harness: DecoderHarness = {
    decoder,
    sink,
    tally,
    feed(...items) {
      for (const item of items) {
        decoder.decode(parseRecordedLine(typeof item === 'string' ? item : JSON.stringify(item)))
      }
      return harness
    },
    nextFile() {
      decoder.finishFile()
      decoder.startFile('another file')
      return harness
    },
    async done() {
      decoder.finishFile()
      const folded = await fold(source, sink, spans, tally)
      sink.events.splice(0, sink.events.length, ...folded)
      return sink.texts()
    },
  }
  return harness
}

/** The rows that records give, by time; of equal times those of the message that came earlier first. */
async function fold(
  source: LobSource,
  sink: RecordingSink,
  spans: FeedSpans,
  tally: ImportTally,
): Promise<BookEvent[]> {
  const recordings = new Map<string, SeriesRecording>()
  for (const [index, event] of sink.events.entries()) {
    const name = sink.series[index]!
    const recording = recordings.get(name) ?? new SeriesRecording(name, () => '')
    recordings.set(name, recording)
    recording.append(event)
  }
  const rows: BookEvent[] = []
  for (const [name, recording] of recordings) {
    const lake = 'no lake'
    const options = { lake, source, spans, replace: false, ledger: new FeedLedger(lake, source) }
    const strands = await LakeMerge.prepare(options, recording)
    if (strands === undefined) continue
    const folds = recording.marketIds().map(() => new MarketFold())
    const markets = { ids: recording.marketIds(), order: recording.marketOrder(), folds }
    const hours = new HourConsolidation(markets, {
      passRowsMax: 1_000_000,
      group: new LobRowGroup(),
      strands,
      onKnowledge: (_market, _ts, strand, reason) => {
        if (reason === 'below zero') tally.negativeLevels++
        if (reason === 'strand over') tally.countGap(strands.endOf(strand!))
      },
      write: (group) => {
        for (let row = 0; row < group.rows; row++) {
          rows.push({
            marketId: group.markets[group.market[row]!]!,
            ts: group.ts[row]!,
            recvTs: group.recvTs[row]!,
            seq: group.seq[row]!,
            event: group.event[row]!,
            side: group.side[row]!,
            price: group.price[row]!,
            qty: Number(group.qty[row]!),
          })
        }
      },
    })
    for (const hour of [...recording.hours.keys()].toSorted((a, b) => a - b)) {
      const pass = { hasKeyframes: false, evidence: new HourEvidence(), localOf: (strand: number) => strand }
      await hours.write(hour, recording.hours.get(hour), pass)
    }
    const lastTs = [...spans.list.values()].map((span) => span.lastTs).reduce((a, b) => (a > b ? a : b))
    const covered = strands.coverageOf(utcDateOf(Number(lastTs / 1_000_000n)))
    if (covered !== undefined) sink.covered.set(name, covered.to)
  }
  return inOrderOfArrival(rows, sink.events)
}

// A file holds each market's rows in their order. Which record a row comes from shows in what it says; those that come
// from none stand at the beginning of their time, or behind the market's rows of that time.
function inOrderOfArrival(rows: readonly BookEvent[], records: readonly BookEvent[]): BookEvent[] {
  const arrivals = new Map<string, number[]>()
  const markets = new Map<string, number>()
  for (const [index, record] of records.entries()) {
    if (!markets.has(record.marketId)) markets.set(record.marketId, index)
    const list = arrivals.get(textOf(record))
    if (list === undefined) arrivals.set(textOf(record), [index])
    else list.push(index)
  }
  const last = new Map<string, { readonly ts: bigint; readonly arrival: number }>()
  const placed = rows.map((row) => {
    const before = last.get(row.marketId)
    const own = row.seq === NO_SEQ ? -1 : arrivals.get(textOf(row))!.shift()!
    const place = { ts: row.ts, arrival: before?.ts === row.ts ? Math.max(own, before.arrival) : own }
    last.set(row.marketId, place)
    return { row, ...place, market: markets.get(row.marketId)! }
  })
  return placed
    .toSorted((a, b) => compareTimes(a.ts, b.ts) || a.arrival - b.arrival || a.market - b.market)
    .map(({ row }) => row)
}

function compareTimes(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}

// Not the price, which may be turned between a record and its row.
function textOf({ marketId, recvTs, event, side, qty }: BookEvent): string {
  return `${marketId} ${recvTs} ${event} ${side} ${qty}`
}

/** One import with everything optional that the command line has. `lines` arrive on stdin. */
export async function runImport(
  lake: string,
  source: LobSource,
  input: { readonly paths?: readonly string[]; readonly lines?: readonly string[] },
  options: Partial<ImportOptions> = {},
): Promise<ImportResult> {
  return await importRecordings({
    source,
    lake,
    paths: input.paths ?? [],
    stdin: Readable.from((input.lines ?? []).map((line) => Buffer.from(`${line}\n`))),
    skipBad: false,
    replace: false,
    useYesPrice: false,
    signal: new AbortController().signal,
    ...options,
  })
}
