// Drives the import's parts in tests: decoders into an array of short texts, and whole imports into a fresh lake.

import { Readable } from 'node:stream'
import type { FeedDecoder } from '../../server/import/feed-decoder.ts'
import { ImportTally } from '../../server/import/import-tally.ts'
import { KalshiDecoder } from '../../server/import/kalshi-decoder.ts'
import type { BookEventSink } from '../../server/import/market-books.ts'
import { PolymarketDecoder } from '../../server/import/polymarket-decoder.ts'
import { importRecordings } from '../../server/import/recording-import.ts'
import type { ImportOptions, ImportResult } from '../../server/import/recording-import.ts'
import { parseRecordedLine } from '../../server/import/recorded-message.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import type { LobSource } from '../../shared/lake-layout.ts'

const EVENT_NAMES = ['clear', 'set', 'add', 'gap']

export class RecordingSink implements BookEventSink {
  readonly events: BookEvent[] = []
  readonly series: string[] = []
  readonly covered = new Map<string, bigint>()

  append(series: string, event: BookEvent): void {
    this.events.push(event)
    this.series.push(series)
  }

  cover(series: string, ts: bigint): void {
    this.covered.set(series, ts)
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
  /** Feeds frames (objects) or lines (strings). */
  feed(...items: (object | string)[]): DecoderHarness
  /** Ends the recording and gives its events as texts. */
  done(): string[]
}

export function decoderHarness(
  source: LobSource,
  options: { series?: string; useYesPrice?: boolean } = {},
): DecoderHarness {
  const sink = new RecordingSink()
  const tally = new ImportTally()
  const common = { sink, tally, series: options.series }
  const decoder =
    source === 'kalshi'
      ? new KalshiDecoder({ ...common, useYesPrice: options.useYesPrice ?? false })
      : new PolymarketDecoder(common)
  decoder.startFile()
  const harness: DecoderHarness = {
    decoder,
    sink,
    tally,
    feed(...items) {
      for (const item of items) {
        const { recvTs, frames } = parseRecordedLine(typeof item === 'string' ? item : JSON.stringify(item))
        for (const frame of frames) decoder.decode(frame, recvTs)
      }
      return harness
    },
    done() {
      decoder.finish()
      return sink.texts()
    },
  }
  return harness
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
