// A date's file of the ledger: its spans as gzip of JSON. Markets that several spans share are written once.

import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { FOOTER_BYTES_MAX } from '../../shared/limits.ts'
import type { RunEnd } from '../feed/read-span.ts'
import type { FeedSpan, NumberedMessage } from '../lake/feed-strand.ts'
import { outlineValues, parseOutline } from '../lake/lob-evidence.ts'
import type { OutlineValues } from '../lake/lob-evidence.ts'
import { stageFile } from '../lake/temporary-file.ts'

/** What one recording, or several that overlap, held of a strand in one date. */
export interface HeardSpan extends FeedSpan {
  readonly date: string
  /** Spans of one number and date are one strand, as far as that is known. */
  readonly strand: number
  /** Series that it speaks of. */
  readonly series: readonly string[]
  /** Strands of one number were heard through one connection. */
  readonly connection: string | undefined
  /** Why it ended, where that was seen. */
  readonly end: RunEnd | undefined
  /** Markets that it speaks of, of all series. */
  readonly marketIds: ReadonlySet<string>
  /** The key of the span before it in one recording. */
  readonly previousKey: string | undefined
  readonly isPreviousSure: boolean
  readonly beforeHole?: NumberedMessage | undefined
  readonly afterHole?: NumberedMessage | undefined
}

interface WrittenSpan {
  readonly outline: OutlineValues
  readonly anchors: readonly (readonly [number, string, string, 0 | 1])[]
  readonly strand: number
  readonly series: readonly string[]
  /** Those of `series` that had a file of the date, with the rows of its messages; left out where all of them had. */
  readonly filed?: readonly string[]
  readonly connection: number
  /** Or the place in the file of a span with the same ones. */
  readonly markets: readonly string[] | number
  readonly end: RunEnd | null
  readonly beforeHole?: readonly [seq: number, recvTs: string]
  readonly afterHole?: readonly [seq: number, recvTs: string]
  readonly previous?: readonly [key: string, isSure: boolean]
}

/** What a date's file of the ledger holds. */
export interface LedgerDate {
  readonly spans: readonly HeardSpan[]
  /** Series that had a file of the date, in which the rows of what was heard are. */
  readonly filed: ReadonlySet<string>
}

/** Throws where the file is damaged. */
export function readLedgerFile(path: string, date: string): LedgerDate {
  const text = gunzipSync(readFileSync(path), { maxOutputLength: FOOTER_BYTES_MAX }).toString('utf8')
  const read: HeardSpan[] = []
  const filed = new Set<string>()
  for (const written of JSON.parse(text) as WrittenSpan[]) {
    const { anchors, markets, end, previous, beforeHole, afterHole } = written
    for (const series of written.filed ?? written.series) filed.add(series)
    read.push({
      ...parseOutline(written.outline),
      anchors: anchors.map(([seq, recvTs, ts, flag]) => {
        return { seq, recvTs: BigInt(recvTs), ts: BigInt(ts), isAfterSilence: flag === 1 }
      }),
      strand: written.strand,
      series: written.series,
      date,
      connection: `${path} ${written.connection}`,
      marketIds: typeof markets === 'number' ? read[markets]!.marketIds : new Set(markets),
      end: end ?? undefined,
      beforeHole: beforeHole && readMessage(beforeHole),
      afterHole: afterHole && readMessage(afterHole),
      previousKey: previous?.[0],
      isPreviousSure: previous?.[1] ?? true,
    })
  }
  return { spans: read, filed }
}

/** Writes what `path` is to hold beside it, and returns where that lies. */
export function stageLedgerFile(path: string, { spans, filed }: LedgerDate): string {
  const connections = new Map<string, number>()
  const places = new Map<string, number>()
  const values = spans.map((span, place): WrittenSpan => {
    const markets = [...span.marketIds].toSorted()
    const marketsKey = markets.join(' ')
    const same = places.get(marketsKey)
    if (same === undefined) places.set(marketsKey, place)
    const name = span.connection ?? ''
    if (!connections.has(name)) connections.set(name, connections.size)
    return {
      outline: outlineValues(span),
      anchors: span.anchors.map((anchor) => [
        anchor.seq,
        String(anchor.recvTs),
        String(anchor.ts),
        anchor.isAfterSilence ? 1 : 0,
      ]),
      series: span.series.toSorted(),
      ...(span.series.every((series) => filed.has(series))
        ? {}
        : { filed: span.series.filter((series) => filed.has(series)).toSorted() }),
      end: span.end ?? null,
      ...(span.beforeHole === undefined ? {} : { beforeHole: writtenMessage(span.beforeHole) }),
      ...(span.afterHole === undefined ? {} : { afterHole: writtenMessage(span.afterHole) }),
      markets: same ?? markets,
      ...(span.previousKey === undefined
        ? {}
        : { previous: [span.previousKey, span.isPreviousSure] as const }),
      strand: span.strand,
      connection: connections.get(name)!,
    }
  })
  return stageFile(path, gzipSync(JSON.stringify(values)))
}

function writtenMessage({ seq, recvTs }: NumberedMessage): readonly [number, string] {
  return [seq, String(recvTs)]
}

function readMessage([seq, recvTs]: readonly [number, string]): NumberedMessage {
  return { seq, recvTs: BigInt(recvTs) }
}
