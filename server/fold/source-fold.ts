// Folds dates of a source: reads their raw pieces into chains, links the chains of neighbouring dates, and writes the
// order-book file of each series and date. A file is a function of the messages of its date and of the books at its beginning.
// A neighbouring date is folded again only if its opening state changes, or the set of its chains that continue after midnight.

import { join } from 'node:path'
import { lobSourceDirectory, rawDateDirectory } from '../../shared/lake-layout.ts'
import { LOB_SOURCES } from '../../shared/lob-sources.ts'
import { addDays } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { LobFileWriter } from '../lake/lob-file-writer.ts'
import { LobRowGroup } from '../lake/lob-row-group.ts'
import type { MarketFoldState } from '../lake/market-fold.ts'
import { SeriesFold } from '../lake/series-fold.ts'
import type { FoldedFile } from '../lake/series-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { SeriesRecordings } from '../lake/series-recordings.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import { continuationOf, linkDates } from './chain-outline.ts'
import type { ChainOutline } from './chain-outline.ts'
import { DateEnds, isInverted } from './date-ends.ts'
import { DateReading } from './date-reading.ts'
import type { FoldListeners, FoldOrder } from './fold-order.ts'
import type { FoldReport } from './fold-report.ts'
import { digestOf, readFoldState } from './fold-state.ts'
import type { ClosingMarket, FoldState } from './fold-state.ts'
import type { FoldTally } from './fold-tally.ts'
import { CONNECTION_SID, leavingOf } from './own-connections.ts'
import type { RawPieces } from './raw-pieces.ts'

export interface SourceFoldOptions extends Pick<FoldOrder, 'lake' | 'source' | 'keepsNext' | 'bounds'> {
  readonly raw: RawPieces
  /** Whether a date has a fold state with the chains of all of its pieces. */
  readonly isFolded: (date: string) => Promise<boolean>
  readonly tally: FoldTally
  readonly report: FoldReport
  readonly signal: AbortSignal
  readonly onWrite?: FoldListeners['onWrite']
}

/** A folded date whose files wait for publication. */
export interface FoldedDate {
  readonly date: string
  readonly files: readonly FoldedFile[]
  readonly state: FoldState
}

/** The opening state of a date. */
interface Opening {
  readonly markets: readonly ClosingMarket[]
  readonly followed: FoldState['followed']
}

const NO_OPENING: Opening = { markets: [], followed: [] }

export class SourceFold {
  readonly #options: SourceFoldOptions
  readonly spillDirectory: string
  readonly #readings = new Map<string, DateReading>()
  readonly #states = new Map<string, FoldState | undefined>()
  /** Files that exist under temporary names, to be discarded after a failure. */
  readonly writers: LobFileWriter[] = []
  /** Series of which files are written: their directories may stay empty after a failure. */
  readonly series = new Set<string>()
  readonly #folded = new Map<string, FoldedDate>()

  constructor(options: SourceFoldOptions) {
    this.#options = options
    this.spillDirectory = temporaryPath(join(lobSourceDirectory(options.lake, options.source), 'spill'))
  }

  /** Folds `dates` and the neighbouring dates that change with them. */
  async fold(dates: readonly string[]): Promise<readonly FoldedDate[]> {
    const waiting = new Set(dates.filter((date) => this.#options.raw.has(date)))
    for (let date = first(waiting); date !== undefined; date = first(waiting)) {
      waiting.delete(date)
      const reading = await this.#read(date)
      const before = addDays(date, -1)
      // If other chains continue from the date before, it must be folded again.
      if (!this.#folded.has(before) && this.#options.raw.has(before)) {
        const state = await this.#stateOf(before)
        const outlines = state?.chains ?? []
        const { continued } = continuationOf(outlines, reading.outlines(), date)
        if (state === undefined || digestOf(continued) !== digestOf(state.continued)) {
          waiting.add(date)
          waiting.add(before)
          continue
        }
      }
      const next = addDays(date, 1)
      const hasNext = this.#options.raw.has(next)
      const isKept = this.#options.keepsNext === true && !waiting.has(next) && hasNext
      // A state that is missing or lacks pieces does not show which chains continue.
      if (hasNext && (waiting.has(next) || isKept || !(await this.#options.isFolded(next))))
        await this.#read(next)
      const folded = await this.#foldDate(date)
      if (isKept) continue
      const nextState = await this.#stateOf(next)
      if (!waiting.has(next) && hasNext) {
        const opening = openingOf(folded.state, (await this.#outlinesOf(next)) ?? [], next)
        if (nextState === undefined || nextState.opening !== digestOf(opening)) waiting.add(next)
      }
    }
    return [...this.#folded.values()].toSorted((a, b) => (a.date < b.date ? -1 : 1))
  }

  async #read(date: string): Promise<DateReading> {
    const known = this.#readings.get(date)
    if (known !== undefined) return known
    const { source, tally, raw, signal, bounds } = this.#options
    const reading = new DateReading({
      date,
      isNumbered: exchangeOf(source).isNumbered,
      tally,
      seriesOf: (id) => raw.seriesOf(id) ?? LOB_SOURCES[source].seriesOf(id),
      recordings: new SeriesRecordings(join(this.spillDirectory, date), bounds?.spillBytes),
    })
    this.#readings.set(date, reading)
    for await (const pieces of raw.hoursOf(date)) {
      signal.throwIfAborted()
      reading.readHour(pieces)
    }
    reading.finish()
    return reading
  }

  async #stateOf(date: string): Promise<FoldState | undefined> {
    const folded = this.#folded.get(date)
    if (folded !== undefined) return folded.state
    if (!this.#states.has(date)) {
      const { lake, source } = this.#options
      this.#states.set(date, await readFoldState(rawDateDirectory(lake, source, date)))
    }
    return this.#states.get(date)
  }

  async #outlinesOf(date: string): Promise<readonly ChainOutline[] | undefined> {
    return this.#readings.get(date)?.outlines() ?? (await this.#stateOf(date))?.chains
  }

  async #foldDate(date: string): Promise<FoldedDate> {
    const reading = this.#readings.get(date)!
    const outlines = reading.outlines()
    const before = await this.#stateOf(addDays(date, -1))
    const opening = before === undefined ? NO_OPENING : openingOf(before, outlines, date)
    const links = linkDates(before?.chains ?? [], outlines, date)
    const chainOf = continueChains(reading, opening, before, links)
    const after = (await this.#outlinesOf(addDays(date, 1))) ?? []
    const ownOutlines = reading.outlines()
    const { continued, broken } = continuationOf(ownOutlines, after, addDays(date, 1))
    for (const id of broken) reading.chains[id]!.endCause = 'sequence gap'
    const ends = new DateEnds(reading, new Set(continued))
    const files: FoldedFile[] = []
    const closing: ClosingMarket[] = []
    ends.endChains()
    for (const recording of [...reading.recordings].toSorted((a, b) => (a.series < b.series ? -1 : 1))) {
      const { series } = recording
      const covered = ends.coverageOf(series)
      if (covered === undefined) continue
      recording.coversFrom = covered.from
      recording.coversTo = covered.to
      const folds = startFolds(opening, series, chainOf)
      this.series.add(series)
      this.#options.report.onSeries({ startFolds: folds, causeOfEnd: (chain) => ends.causeOf(chain) })
      const fold = this.#foldOf(reading, recording, folds)
      files.push(...(await fold.run()))
      closing.push(...closingOf(series, fold.endFolds, new Set(continued)))
    }
    for (const recording of reading.recordings)
      for (const hour of Array.from(recording.hours.keys())) recording.dropHour(hour)
    const state: FoldState = {
      series: files.map(({ series }) => series),
      chains: ownOutlines,
      continued,
      closing: closing.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      followed: continued.map((id) => [
        id,
        [...reading.chains[id]!.followed].map(([market, { series }]) => [market, series] as const),
      ]),
      opening: digestOf(opening),
    }
    const folded = { date, files, state }
    this.#folded.set(date, folded)
    return folded
  }

  #foldOf(
    reading: DateReading,
    recording: SeriesRecording,
    folds: ReadonlyMap<string, MarketFoldState>,
  ): SeriesFold {
    const { lake, source, bounds, report, signal, onWrite } = this.#options
    const { hasNoLeg } = exchangeOf(source)
    const events = [...recording.hours.values()].reduce((sum, { rows }) => sum + rows, 0)
    return new SeriesFold(recording, {
      lake,
      source,
      passRowsMax: bounds?.passRows,
      group: new LobRowGroup(bounds?.groupRows),
      chains: {
        isInverted: (chain) => hasNoLeg && isInverted(reading.chains[chain]!),
        startFolds: folds,
      },
      onKnowledge: report.onKnowledge,
      onDate: report.onDate,
      signal,
      onFile: (writer) => this.writers.push(writer),
      onRows: (date, rows) => onWrite?.({ series: recording.series, date, rows, events }),
    })
  }
}

/**
 * Whether a date begins with the books that the date before has at its end, and that date ends as the messages after it show. A date
 * without segments, such as a sealed one, stays as it is.
 */
export function followsOn(before: FoldState, state: FoldState, date: string, hasSegments: boolean): boolean {
  const { continued } = continuationOf(before.chains, state.chains, date)
  if (hasSegments && digestOf(continued) !== digestOf(before.continued)) return false
  return digestOf(openingOf(before, state.chains, date)) === state.opening
}

/** The books with which `date` begins: those of chains of the date before that continue. */
function openingOf(before: FoldState, outlines: readonly ChainOutline[], date: string): Opening {
  const continued = new Set(continuationOf(before.chains, outlines, date).continued)
  return {
    markets: before.closing.flatMap(({ id, series, books }) => {
      const own = books.filter(({ chain }) => continued.has(chain))
      return own.length === 0 ? [] : [{ id, series, books: own }]
    }),
    followed: before.followed.filter(([chain]) => continued.has(chain)),
  }
}

/** Continues the chains of the date before. Returns the chains of this date by their numbers in the date before. */
function continueChains(
  reading: DateReading,
  { followed }: Opening,
  before: FoldState | undefined,
  links: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  const { dayStart } = reading
  const chainOf = new Map<number, number>([...links].map(([own, old]) => [old, own]))
  const connectionOf = new Map<number, number>()
  const outlineOf = new Map((before?.chains ?? []).map((outline) => [outline.id, outline]))
  for (const [own, old] of links) {
    const { connection, isTurned } = outlineOf.get(old)!
    const chain = reading.chains[own]!
    chain.isTurned ??= isTurned
    const shared = connectionOf.get(connection)
    if (shared === undefined) connectionOf.set(connection, chain.connection)
    else reading.connections.join(shared, chain.connection)
  }
  const spines = reading.chains.filter(({ sid }) => sid === CONNECTION_SID)
  const spineOf = new Map(spines.map((chain) => [reading.connections.of(chain.connection), chain]))
  for (const [old, markets] of followed) {
    const { connection, sid, isTurned } = outlineOf.get(old)!
    let own = chainOf.get(old)
    if (own === undefined) {
      // It has no message in this date.
      const place = connectionOf.get(connection) ?? reading.connections.add()
      const chain = reading.addChain(sid, place, false, isTurned)
      chain.hear(dayStart, dayStart)
      chain.lastSeq = outlineOf.get(old)!.lastSeq
      chain.name = outlineOf.get(old)!.name
      own = chain.id
      chainOf.set(old, own)
    }
    const chain = reading.chains[own]!
    const spine = chain.name === undefined ? undefined : spineOf.get(reading.connections.of(chain.connection))
    for (const [id, series] of markets) {
      const left = spine === undefined || chain.markets.has(id) ? undefined : leavingOf(spine, chain.sid, id)
      chain.follow(id, series, dayStart)
      reading.recordings.of(series).cover(dayStart)
      if (left !== undefined) reading.leave(chain, id, left)
    }
  }
  return chainOf
}

function startFolds(
  { markets }: Opening,
  series: string,
  chainOf: ReadonlyMap<number, number>,
): Map<string, MarketFoldState> {
  const folds = new Map<string, MarketFoldState>()
  for (const market of markets) {
    if (market.series !== series) continue
    const known = market.books.map(({ chain, levels }) => ({ chain: chainOf.get(chain)!, levels }))
    folds.set(market.id, { serving: known[0]!.chain, isGapped: false, lastTs: 0n, rows: 0, known })
  }
  return folds
}

function closingOf(
  series: string,
  folds: ReadonlyMap<string, MarketFoldState>,
  continued: ReadonlySet<number>,
): ClosingMarket[] {
  return [...folds].flatMap(([id, { known, serving }]) => {
    const books = known.filter(({ chain }) => continued.has(chain))
    if (books.length === 0) return []
    const sorted = books.toSorted((a, b) => Number(b.chain === serving) - Number(a.chain === serving))
    return [{ id, series, books: sorted }]
  })
}

function first(dates: ReadonlySet<string>): string | undefined {
  let found: string | undefined
  for (const date of dates) if (found === undefined || date < found) found = date
  return found
}
