// What the imports of a source have heard so far: the strands of every date, whatever series they speak of. A series'
// own files prove what they hold; the ledger proves besides that a subscription went on while it spoke of other series.
// It is one small file a date beside the series, gzip of JSON; losing it loses no row, only such proofs.

import { mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { FOOTER_BYTES_MAX } from '../../shared/limits.ts'
import { addDays } from '../../shared/utc-date.ts'
import { joinOutlines, outlineOf } from '../lake/feed-strand.ts'
import type { FeedSpan, NumberedMessage } from '../lake/feed-strand.ts'
import { outlineValues, parseOutline } from '../lake/lob-evidence.ts'
import type { OutlineValues } from '../lake/lob-evidence.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import type { RunEnd } from '../feed/read-span.ts'
import { dateOf, datesOf, isSilent, marketIdsOf } from './series-spans.ts'
import { linkSpans, spanKey } from './span-links.ts'
import { assembleStrands } from './strand-assembly.ts'
import type { LooseSpan } from './strand-chain.ts'

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
  readonly connection: number
  /** Or the place in the file of a span with the same ones. */
  readonly markets: readonly string[] | number
  readonly end: RunEnd | null
  readonly beforeHole?: readonly [seq: number, recvTs: string]
  readonly afterHole?: readonly [seq: number, recvTs: string]
  readonly previous?: readonly [key: string, isSure: boolean]
}

/** A span of the ledger, to be put together with others. */
type LooseHeardSpan = LooseSpan & HeardSpan

/** A strand of more parts than that is kept as one: what was put together wrongly stays so. */
const PARTS_MAX = 20_000

export class FeedLedger {
  readonly #lake: string
  readonly #source: LobSource
  readonly #heard: HeardSpan[] = []
  /** Files that could not be read, and why. */
  readonly damaged: string[] = []
  /** The spans of a date's strand, by how it begins. */
  readonly #byStrand = new Map<string, HeardSpan[]>()

  constructor(lake: string, source: LobSource) {
    this.#lake = lake
    this.#source = source
  }

  /** Reads the dates from the day before a recording on. A damaged file proves nothing. */
  read(spans: FeedSpans): void {
    const [first] = datesOf(spans)
    if (first === undefined) return
    for (const name of namesIn(this.#directory)) {
      const date = /^date=(\d{4}-\d{2}-\d{2})\.json\.gz$/.exec(name)?.[1]
      if (date === undefined || date < addDays(first, -1)) continue
      const heard = this.#readDate(date)
      this.#heard.push(...heard)
      for (const strand of groupedBy(heard, (span) => span.strand).values()) {
        // As files outline it: a span without messages counts only where there is no other.
        const telling = strand.filter((span) => !isSilent(span))
        const outline = joinOutlines(telling.length === 0 ? strand : telling)
        this.#byStrand.set(spanKey({ ...outline, sid: strand[0]!.sid, date }), strand)
      }
    }
  }

  /**
   * Spans from the day before `date` on of which no file of the series tells: of strands that say nothing of it, and of
   * dates for which it has no file, as `hasFile` says.
   */
  spansFor(series: string, date: string, hasFile: (date: string) => boolean): LooseHeardSpan[] {
    const isTold = (strand: readonly HeardSpan[]): boolean =>
      hasFile(strand[0]!.date) && strand.some((span) => span.series.includes(series))
    return [...this.#byStrand.values()]
      .filter((strand) => strand[0]!.date >= addDays(date, -1) && !isTold(strand))
      .flat()
      .map((span) => ({ ...span, previous: undefined, name: this.#pathOf(span.date) }))
  }

  /** What a strand's part in a date was put together of; empty when that is not known. */
  partsOf(date: string, strand: Pick<FeedSpan, 'sid' | 'firstSeq' | 'firstRecvTs'>): readonly HeardSpan[] {
    return this.#byStrand.get(spanKey({ ...strand, date })) ?? []
  }

  /** Adds what the recording has heard. Comes when its rows are in the lake: a ledger never proves what is not there. */
  write(spans: FeedSpans): void {
    const numbers = new Map([...spans.list.keys()].map((number, index) => [number, index]))
    const read = [...spans.list.values()].map((span) => ({
      ...outlineOf(span),
      name: '',
      previous: span.previous === undefined ? undefined : numbers.get(span.previous),
      strand: 0,
      connection: `${span.name} ${span.connection}`,
      date: dateOf(span.firstTs),
      series: [...span.members.keys()],
      marketIds: marketIdsOf(span),
      end: span.end,
      beforeHole: span.beforeHole,
      afterHole: span.afterHole,
      previousKey: undefined,
      isPreviousSure: span.isPreviousSure,
    }))
    const all: LooseHeardSpan[] = [
      ...read,
      ...this.#heard.map((span) => ({ ...span, name: '', previous: undefined })),
    ]
    linkSpans(all)
    const strands = assembleStrands(all).map(({ spans: numbersOf }) => partsByDate(all, numbersOf))
    const touched = new Set(read.flatMap(({ date }) => [date, addDays(date, 1)]))
    for (const date of touched) {
      const written = strands.flatMap((parts, strand) =>
        (parts.get(date) ?? []).map((part) => ({ ...part, strand })),
      )
      if (written.length > 0) this.#writeDate(date, written)
    }
  }

  #readDate(date: string): HeardSpan[] {
    const path = this.#pathOf(date)
    try {
      return readDate(path, date)
    } catch (error) {
      this.damaged.push(`${path}: ${error instanceof Error ? error.message : String(error)}`)
      return []
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
    const path = this.#pathOf(date)
    mkdirSync(dirname(path), { recursive: true })
    const temporary = temporaryPath(path)
    writeFileSync(temporary, gzipSync(JSON.stringify(values)))
    renameSync(temporary, path)
  }
}

/** A strand's spans by date, in feed order; those that hold messages of each other are one. */
function partsByDate(all: readonly LooseHeardSpan[], numbers: readonly number[]): Map<string, HeardSpan[]> {
  const parts = new Map<string, HeardSpan[]>()
  const partOf = new Map<number, readonly [date: string, place: number]>()
  for (const [date, own] of groupedBy(numbers, (number) => all[number]!.date)) {
    const list: LooseHeardSpan[] = []
    for (const number of own) {
      const span = all[number]!
      const last = list.at(-1)
      if (last !== undefined && (overlap(last, span) || own.length > PARTS_MAX))
        list[list.length - 1] = joined(last, span)
      else list.push(span)
      partOf.set(number, [date, list.length - 1])
    }
    parts.set(date, list)
  }
  return withKeys()

  // Spans have their final beginning only now.
  function withKeys(): Map<string, HeardSpan[]> {
    for (const number of numbers) {
      const { previous } = all[number]!
      const before = previous === undefined ? undefined : partOf.get(previous)
      if (before === undefined) continue
      const [date, place] = partOf.get(number)!
      const previousKey = spanKey(parts.get(before[0])![before[1]]!)
      if (before[0] === date && before[1] === place) continue
      parts.get(date)![place] = { ...parts.get(date)![place]!, previousKey }
    }
    return parts
  }
}

function overlap(a: FeedSpan, b: FeedSpan): boolean {
  return a.sid === null ? b.firstRecvTs <= a.lastRecvTs : b.firstSeq <= a.lastSeq
}

function joined(a: LooseHeardSpan, b: LooseHeardSpan): LooseHeardSpan {
  const outline = joinOutlines([a, b])
  const isLast = a.sid === null ? b.lastRecvTs >= a.lastRecvTs : b.lastSeq >= a.lastSeq
  const { isEnded, end, afterHole } = isLast ? b : a
  return {
    ...a,
    ...outline,
    isTurned: a.isTurned ?? b.isTurned,
    isBegun: a.isBegun || b.isBegun,
    isEnded,
    end,
    afterHole,
    series: [...new Set([...a.series, ...b.series])],
    marketIds: new Set([...a.marketIds, ...b.marketIds]),
  }
}

function groupedBy<T, K>(list: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of list) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

function readDate(path: string, date: string): HeardSpan[] {
  const text = gunzipSync(readFileSync(path), { maxOutputLength: FOOTER_BYTES_MAX }).toString('utf8')
  const read: HeardSpan[] = []
  for (const written of JSON.parse(text) as WrittenSpan[]) {
    const { anchors, markets, end, previous, beforeHole, afterHole } = written
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
  return read
}

function writtenMessage({ seq, recvTs }: NumberedMessage): readonly [number, string] {
  return [seq, String(recvTs)]
}

function readMessage([seq, recvTs]: readonly [number, string]): NumberedMessage {
  return { seq, recvTs: BigInt(recvTs) }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
