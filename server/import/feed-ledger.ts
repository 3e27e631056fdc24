// What the imports of a source have heard so far: the strands of every date, whatever series they speak of. A series'
// own files prove what they hold; the ledger proves besides that a subscription went on while it spoke of other series.
// It is one small file a date beside the series, gzip of JSON; losing it loses no row, only such proofs.

import { mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { FOOTER_BYTES_MAX } from '../../shared/limits.ts'
import { addDays } from '../../shared/utc-date.ts'
import { joinOutlines, outlineOf } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import { outlineValues, parseOutline } from '../lake/lob-evidence.ts'
import type { OutlineValues } from '../lake/lob-evidence.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import { SpanEdges } from './contended-seams.ts'
import type { FeedSpans, RunEnd } from './feed-spans.ts'
import { dateOf, datesOf, marketIdsOf } from './series-spans.ts'
import { SpanLinks, previousRecvTsOf } from './span-links.ts'
import { assembleStrands } from './strand-assembly.ts'
import type { LooseSpan } from './strand-assembly.ts'

/** A strand's part in one date. */
interface HeardSpan extends FeedSpan {
  readonly date: string
  /** Series that it speaks of. */
  readonly series: readonly string[]
  /** Strands of one number were heard through one connection. */
  readonly connection: string | undefined
  /** Why it ended, where that was seen. */
  readonly end: RunEnd | undefined
  /** Without numbers its markets tell what it may go on with. */
  readonly marketIds: ReadonlySet<string>
  /** First receive time of its part in the date before, where one recording held both. */
  readonly previousRecvTs: bigint | undefined
}

interface WrittenSpan {
  readonly outline: OutlineValues
  readonly anchors: readonly (readonly [number, string, string, 0 | 1])[]
  readonly series: readonly string[]
  readonly connection: number
  readonly markets: readonly string[]
  readonly end: RunEnd | null
  readonly previous?: string
}

export class FeedLedger {
  readonly #lake: string
  readonly #source: LobSource
  readonly #heard: HeardSpan[] = []

  constructor(lake: string, source: LobSource) {
    this.#lake = lake
    this.#source = source
  }

  /** Reads the dates of a recording and those beside them. A damaged file proves nothing. */
  read(spans: FeedSpans): void {
    const [first, last] = datesOf(spans)
    if (first === undefined || last === undefined) return
    for (const name of namesIn(this.#directory)) {
      const date = /^date=(\d{4}-\d{2}-\d{2})\.json\.gz$/.exec(name)?.[1]
      if (date === undefined || date < addDays(first, -1) || date > addDays(last, 1)) continue
      this.#heard.push(...readDate(this.#pathOf(date), date))
    }
  }

  /** Spans that say nothing of the series, from the day before `date` on. */
  spansFor(series: string, date: string): (LooseSpan & Pick<HeardSpan, 'date' | 'previousRecvTs'>)[] {
    return this.#heard
      .filter((span) => span.date >= addDays(date, -1) && !span.series.includes(series))
      .map((span) => ({ ...span, ...LOOSE, name: this.#pathOf(span.date) }))
  }

  /** What was heard as the strand that begins so in a date: its connection, and all markets that it speaks of. */
  find(
    date: string,
    { sid, firstSeq, firstRecvTs }: Omit<FeedSpan, 'anchors'>,
  ): Pick<HeardSpan, 'connection' | 'marketIds' | 'end' | 'previousRecvTs'> | undefined {
    return this.#heard.find(
      (span) =>
        span.date === date &&
        span.sid === sid &&
        span.firstSeq === firstSeq &&
        span.firstRecvTs === firstRecvTs,
    )
  }

  /** Adds what the recording has heard. Comes when its rows are in the lake: a ledger never proves what is not there. */
  write(spans: FeedSpans): void {
    const numbers = new Map([...spans.list.keys()].map((number, index) => [number, index]))
    const read = [...spans.list.values()].map((span) => ({
      ...outlineOf(span),
      ...LOOSE,
      previous: span.previous === undefined ? undefined : numbers.get(span.previous),
      connection: `${span.name} ${span.connection}`,
      date: dateOf(span.firstTs),
      series: [...span.members.keys()],
      marketIds: marketIdsOf(span),
      end: span.end,
      previousRecvTs: undefined,
    }))
    const edges = new SpanEdges([...read, ...this.#heard])
    const all: (LooseSpan & HeardSpan)[] = [...read]
    const links = new SpanLinks()
    for (const span of this.#heard) {
      const parts = edges.parts(span).map((part) => all.push({ ...span, ...LOOSE, ...part }) - 1)
      links.add(span, parts)
    }
    links.link(all)
    const strands = assembleStrands(all).map(({ spans: numbers }) => numbers.map((number) => all[number]!))
    const touched = new Set(read.flatMap(({ date }) => [date, addDays(date, 1)]))
    for (const date of touched) {
      const written = strands.flatMap((strand) => {
        const own = strand.filter((span) => span.date === date)
        return own.length === 0 ? [] : [{ ...joined(own), previousRecvTs: previousRecvTsOf(strand, date) }]
      })
      if (written.length > 0) this.#writeDate(date, written)
    }
  }

  get #directory(): string {
    return join(lobSourceDirectory(this.#lake, this.#source), 'feed')
  }

  #pathOf(date: string): string {
    return join(this.#directory, `date=${date}.json.gz`)
  }

  #writeDate(date: string, spans: readonly HeardSpan[]): void {
    const connections = new Map<string, number>()
    const values = spans.map((span): WrittenSpan => {
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
        end: span.end ?? null,
        markets: span.sid === null ? [...span.marketIds].toSorted() : [],
        ...(span.previousRecvTs === undefined ? {} : { previous: String(span.previousRecvTs) }),
        connection: connections.get(name)!,
      }
    })
    const path = this.#pathOf(date)
    mkdirSync(dirname(path), { recursive: true })
    const temporary = temporaryPath(path)
    writeFileSync(temporary, gzipSync(JSON.stringify(values)))
    renameSync(temporary, path)
  }
}

const LOOSE = {
  name: '',
  previous: undefined as number | undefined,
}

function joined(spans: readonly HeardSpan[]): HeardSpan {
  const [first] = spans
  if (first === undefined || spans.length === 1) return first!
  return {
    ...first,
    ...joinOutlines(spans),
    isTurned: spans.map(({ isTurned }) => isTurned).find((value) => value !== null) ?? null,
    isEnded: spans.at(-1)!.isEnded,
    end: spans.at(-1)!.end,
    series: [...new Set(spans.flatMap(({ series }) => series))],
    marketIds: new Set(spans.flatMap(({ marketIds }) => [...marketIds])),
  }
}

function readDate(path: string, date: string): HeardSpan[] {
  try {
    const text = gunzipSync(readFileSync(path), { maxOutputLength: FOOTER_BYTES_MAX }).toString('utf8')
    return (JSON.parse(text) as WrittenSpan[]).map(
      ({ outline, anchors, series, connection, markets, end, previous }) => ({
        ...parseOutline(outline),
        anchors: anchors.map(([seq, recvTs, ts, flag]) => {
          return { seq, recvTs: BigInt(recvTs), ts: BigInt(ts), isAfterSilence: flag === 1 }
        }),
        series,
        date,
        connection: `${path} ${connection}`,
        marketIds: new Set(markets),
        end: end ?? undefined,
        previousRecvTs: previous === undefined ? undefined : BigInt(previous),
      }),
    )
  } catch {
    return []
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
