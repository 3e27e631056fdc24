// What the imports of a source have heard so far: the strands of every date, whatever series they speak of. A series'
// own files prove what they hold; the ledger proves besides that a subscription went on while it spoke of other series.
// It is one small file a date beside the series (ledger-file.ts); losing it loses no row, only such proofs.

import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { groupedBy } from '../../shared/grouped-by.ts'
import { lobFilePath, lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays } from '../../shared/utc-date.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import { joinOutlines, outlineOf } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import { removeStaleTemporaries } from '../lake/temporary-file.ts'
import { namesIn } from './lake-dates.ts'
import { ConnectionEnds, readEndsFile, stageEndsFile } from './connection-ends.ts'
import { readLedgerFile, stageLedgerFile } from './ledger-file.ts'
import type { HeardSpan } from './ledger-file.ts'
import { dateOf, datesOf, isSilent, marketIdsOf } from './series-spans.ts'
import { linkSpans, spanKey } from './span-links.ts'
import { assembleStrands } from './strand-assembly.ts'
import type { LooseSpan } from './strand-chain.ts'

/** A span of the ledger, to be put together with others. */
type LooseHeardSpan = LooseSpan & HeardSpan

const NO_ENDS = { endsBefore: [] }
/** A strand of more parts than that is kept as one: what was put together wrongly stays so. */
const PARTS_MAX = 20_000

export class FeedLedger {
  readonly #lake: string
  readonly #source: LobSource
  #heard: HeardSpan[] = []
  /** Words that a connection had ended, by date. */
  readonly #ends = new Map<string, readonly bigint[]>()
  /** Files that could not be read, and why. */
  readonly damaged: string[] = []
  /** The spans of a date's strand, by how it begins. */
  readonly #byStrand = new Map<string, HeardSpan[]>()
  /** Dates of which something was forgotten. */
  readonly #forgotten = new Set<string>()
  /** By date: series whose file had what was heard of them, when that was written down. */
  readonly #filedIn = new Map<string, Set<string>>()
  /** Paths of the files that are about to be published. */
  #published: ReadonlySet<string> = new Set()
  /** Where what a file is to hold lies, by its path: once something is forgotten, and at the end. */
  readonly #stagedWithout = new Map<string, string>()
  readonly #staged = new Map<string, string>()
  readonly #stagedEnds = new Map<string, string>()

  constructor(lake: string, source: LobSource) {
    this.#lake = lake
    this.#source = source
  }

  /**
   * Reads the dates from the day before a recording on. A damaged file proves nothing.
   * @throws {Error} when words that a connection had ended cannot be read: without them books would go on over them
   */
  read(spans: FeedSpans): void {
    const [first] = datesOf(spans)
    if (first === undefined) return
    for (const name of namesIn(this.#directory)) {
      const [, kind, date] = /^(date|ends)=(\d{4}-\d{2}-\d{2})\.json(?:\.gz)?$/.exec(name) ?? []
      if (date === undefined || date < addDays(first, -1)) continue
      if (kind === 'ends') {
        this.#ends.set(date, readEndsFile(this.#endsPathOf(date)))
        continue
      }
      const heard = this.#readDate(date)
      this.#heard.push(...heard)
      for (const strand of groupedBy(heard, (span) => span.strand).values()) {
        // As files outline it: a span without messages counts only where there is no other.
        const telling = strand.filter((span) => !isSilent(span))
        const outline = joinOutlines(telling.length === 0 ? strand : telling)
        this.#byStrand.set(spanKey({ ...outline, sid: strand[0].sid, date }), strand)
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

  /** Dates of which it had read something that the series' file had, and for which `hasFile` knows no file any more. */
  goneDates(series: string, hasFile: (date: string) => boolean): Set<string> {
    const gone = [...this.#filedIn].filter(([date, filed]) => filed.has(series) && !hasFile(date))
    return new Set(gone.map(([date]) => date))
  }

  /** All words that a connection had ended: the recording's, and those that were read before it. */
  endsWith({ endsBefore }: Pick<FeedSpans, 'endsBefore'>): ConnectionEnds {
    return new ConnectionEnds([...this.#ends.values(), endsBefore].flat())
  }

  /** What a strand's part in a date was put together of; empty when that is not known. */
  partsOf(date: string, strand: FeedSpan): readonly HeardSpan[] {
    return this.#byStrand.get(spanKey({ ...strand, date })) ?? []
  }

  /**
   * Writes what the recording has heard under temporary names, so that a disk that is full is told before any row is in
   * the lake. `paths` are the files that are about to be published.
   */
  async stage(spans: FeedSpans, paths: readonly string[]): Promise<void> {
    this.#published = new Set(paths)
    await removeStaleTemporaries(this.#directory)
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
    const ends = groupedBy(spans.endsBefore, dateOf)
    for (const [date, own] of ends) {
      const path = this.#endsPathOf(date)
      this.#stagedEnds.set(path, stageEndsFile(path, [...own, ...(this.#ends.get(date) ?? [])]))
    }
    const dates = [...read.map(({ date }) => date), ...ends.keys()]
    const touched = dates.flatMap((date) => [date, addDays(date, 1)])
    this.#stageDates([...touched, ...this.#forgotten], all, this.endsWith(spans), this.#staged)
    const left = all.slice(read.length)
    this.#stageDates([...this.#forgotten], left, this.endsWith(NO_ENDS), this.#stagedWithout)
  }

  /**
   * Forgets what was heard of a series in a date, from what is staged on: its rows are replaced, or gone, and with them
   * goes what they prove. That others of its subscription went on is proven by their own files.
   */
  forget(series: string, date: string): void {
    const isLeft = (span: HeardSpan): boolean => span.date !== date || !span.series.includes(series)
    this.#filedIn.get(date)?.delete(series)
    const keys = new Set(this.#heard.filter((span) => !isLeft(span)).map(spanKey))
    if (keys.size === 0) return
    this.#forgotten.add(date)
    this.#heard = this.#heard
      .filter(isLeft)
      .map((span) => (keys.has(span.previousKey ?? '') ? { ...span, previousKey: undefined } : span))
  }

  /**
   * Adds words that a connection had ended, and drops what was forgotten. Comes before rows are replaced: a ledger never
   * proves what is not there, and rows are never without what ends them.
   */
  publishBeforeRows(): void {
    publishStaged(this.#stagedEnds)
    publishStaged(this.#stagedWithout)
  }

  /** Adds what was staged. Comes when the rows are in the lake: a ledger never proves what is not there. */
  publish(): void {
    publishStaged(this.#staged)
  }

  /** Removes what was staged and not published. */
  discard(): void {
    for (const staged of [this.#staged, this.#stagedWithout, this.#stagedEnds]) {
      for (const temporary of staged.values()) rmSync(temporary, { force: true })
      staged.clear()
    }
  }

  #stageDates(
    dates: readonly string[],
    all: readonly LooseHeardSpan[],
    ends: ConnectionEnds,
    staged: Map<string, string>,
  ): void {
    if (dates.length === 0) return
    const spans = all.map((span) => ({ ...span }))
    linkSpans(spans)
    const strands = assembleStrands(spans, ends).map(({ spans: numbersOf }) => partsByDate(spans, numbersOf))
    for (const date of new Set(dates)) {
      const written = strands.flatMap((parts, strand) =>
        (parts.get(date) ?? []).map((part) => ({ ...part, strand })),
      )
      if (written.length === 0 && !this.#forgotten.has(date)) continue
      const path = this.#pathOf(date)
      staged.set(path, stageLedgerFile(path, { spans: written, filed: this.#filedOf(date, written) }))
    }
  }

  #filedOf(date: string, spans: readonly HeardSpan[]): ReadonlySet<string> {
    const filed = new Set(this.#filedIn.get(date))
    for (const series of new Set(spans.flatMap((span) => span.series))) {
      const path = lobFilePath(this.#lake, this.#source, series, date)
      if (this.#published.has(path) || existsSync(path)) filed.add(series)
    }
    return filed
  }

  #readDate(date: string): readonly HeardSpan[] {
    const path = this.#pathOf(date)
    try {
      const { spans, filed } = readLedgerFile(path, date)
      this.#filedIn.set(date, new Set(filed))
      return spans
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

  #endsPathOf(date: string): string {
    return join(this.#directory, `ends=${date}.json`)
  }
}

function publishStaged(staged: Map<string, string>): void {
  for (const [path, temporary] of staged) {
    renameSync(temporary, path)
    staged.delete(path)
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
