// The report of a fold for each market and UTC date: how much is known, where the gaps are, and why. The fold calls it whenever a
// book becomes known or unknown, and once at the end of each date.

import { NS_PER_DAY, later } from '../../shared/utc-date.ts'
import type { KnowledgeListener } from '../lake/hour-fold.ts'
import type { MarketFoldState, UnknownReason } from '../lake/market-fold.ts'
import type { FoldedSeriesDate } from '../lake/series-fold.ts'
import type { FoldTally, GapCause } from './fold-tally.ts'

/** Gaps listed for one market and date, and in total. Further gaps are only counted. */
const MARKET_GAPS_LISTED_MAX = 1_000
const GAPS_LISTED_MAX = 100_000

/** Unknown from `from` until before `to`, ns. */
export interface ReportedGap {
  readonly from: bigint
  readonly to: bigint
  readonly cause: GapCause
}

/** One market in one UTC date of a file. */
export interface MarketDay {
  readonly series: string
  readonly market: string
  readonly date: string
  /** What the date's file covers. */
  readonly coveredNs: bigint
  readonly knownNs: bigint
  /** The first ones, by time. */
  readonly gaps: readonly ReportedGap[]
  readonly gapsLeftOut: number
  /** Times at which a known book became unknown, by cause. */
  readonly losses: ReadonlyMap<GapCause, number>
  /** Receive time minus exchange time, of `messages` messages that have both. */
  readonly lag: { readonly p50Ms: number; readonly p99Ms: number; readonly messages: number } | undefined
  /** Snapshots beyond the first. */
  readonly resets: number
  readonly changesWithoutBook: number
}

/** A series of a date that is about to be written. */
export interface FoldedSeries {
  /** The markets at the beginning of the date, by id. */
  readonly startFolds: ReadonlyMap<string, MarketFoldState>
  /** Why a chain ended. */
  readonly causeOfEnd: (chain: number) => GapCause
}

/** A market in the date that is being folded. */
class MarketKnowledge {
  knownFrom: bigint | undefined
  /** Since when it is unknown; undefined: from the beginning. */
  unknownFrom: bigint | undefined
  cause: GapCause = 'no snapshot yet'
  knownNs = 0n
  /** The date's first known interval, ns. The file may cover a book that continues from the date before only later. */
  firstKnown: readonly [from: bigint, to: bigint] | undefined
  gaps: { from: bigint | undefined; to: bigint | undefined; cause: GapCause }[] = []
  gapsLeftOut = 0
  losses = new Map<GapCause, number>()
  isTouched = false
}

export class FoldReport {
  /** The market days so far, in the order in which they were folded. */
  readonly days: MarketDay[] = []
  #markets = new Map<string, MarketKnowledge>()
  #causeOfEnd: FoldedSeries['causeOfEnd'] = () => 'end of a piece'
  #gapsListed = 0

  /** Adds the losses of all market days to the counters. */
  countLosses(tally: FoldTally): void {
    for (const { losses } of this.days) {
      for (const [cause, count] of losses) {
        if (cause === 'level below zero') tally.negativeLevels += count
        // The fold itself counts unsubscribed markets.
        else if (cause !== 'no longer followed') tally.countGap(cause, count)
      }
    }
  }

  /** A series of a date is about to be folded. */
  readonly onSeries = ({ startFolds, causeOfEnd }: FoldedSeries): void => {
    this.#causeOfEnd = causeOfEnd
    this.#markets = new Map()
    for (const [id, { serving }] of startFolds) {
      // From the beginning of the date.
      if (serving !== undefined) this.#market(id).knownFrom = 0n
    }
  }

  readonly onKnowledge: KnowledgeListener = (id, ts, chain, reason) => {
    const market = this.#market(id)
    market.isTouched = true
    if (reason !== undefined) {
      this.#lose(market, ts, this.#causeOf(reason, chain))
      return
    }
    if (market.knownFrom !== undefined) return
    if (market.unknownFrom !== ts) this.#addGap(market, ts)
    market.knownFrom = ts
  }

  readonly onDate = ({ series, date, coversFrom, coversTo, ids, folds }: FoldedSeriesDate): void => {
    const end = coversTo + 1n
    const dayStart = BigInt(Date.parse(`${date}T00:00:00Z`)) * 1_000_000n
    for (const [index, id] of ids.entries()) {
      const figures = folds[index]!.figures
      const known = this.#markets.get(id)
      const isPresent =
        (figures?.rows ?? 0) > 0 || known?.isTouched === true || known?.knownFrom !== undefined
      if (figures === undefined || !isPresent) continue
      const market = known ?? this.#market(id)
      this.#closeDate(market, dayStart, end)
      const { lag, resets, changesWithoutBook } = figures
      this.days.push({
        series,
        market: id,
        date,
        coveredNs: end - coversFrom,
        knownNs: knownSince(market, coversFrom),
        gaps: market.gaps
          .map(({ from, to, cause }) => ({ from: later(from, coversFrom), to: to ?? end, cause }))
          .filter(({ from, to }) => from < to),
        gapsLeftOut: market.gapsLeftOut,
        losses: market.losses,
        lag:
          lag.count === 0
            ? undefined
            : { p50Ms: lag.percentileMs(0.5)!, p99Ms: lag.percentileMs(0.99)!, messages: lag.count },
        resets,
        changesWithoutBook,
      })
    }
  }

  #market(id: string): MarketKnowledge {
    const known = this.#markets.get(id)
    if (known !== undefined) return known
    const market = new MarketKnowledge()
    this.#markets.set(id, market)
    return market
  }

  #causeOf(reason: UnknownReason, chain: number | undefined): GapCause {
    if (reason === 'chain over') return this.#causeOfEnd(chain!)
    if (reason === 'recording over') return 'end of the recording'
    if (reason === 'left') return 'no longer followed'
    return reason === 'below zero' ? 'level below zero' : 'loss in the recording'
  }

  #lose(market: MarketKnowledge, ts: bigint, cause: GapCause): void {
    if (market.knownFrom === undefined) return
    countKnown(market, (ts / NS_PER_DAY) * NS_PER_DAY, ts)
    market.knownFrom = undefined
    market.unknownFrom = ts
    market.cause = cause
    if (cause !== 'end of the recording') market.losses.set(cause, (market.losses.get(cause) ?? 0) + 1)
  }

  /** Adds a gap that ends at `to`; undefined: at the end of what is covered. */
  #addGap(market: MarketKnowledge, to: bigint | undefined): void {
    if (market.gaps.length === MARKET_GAPS_LISTED_MAX || this.#gapsListed === GAPS_LISTED_MAX) {
      market.gapsLeftOut++
      return
    }
    this.#gapsListed++
    market.gaps.push({ from: market.unknownFrom, to, cause: market.cause })
  }

  #closeDate(market: MarketKnowledge, dayStart: bigint, end: bigint): void {
    if (market.knownFrom === undefined) {
      if (market.unknownFrom === undefined || market.unknownFrom < end) this.#addGap(market, undefined)
      return
    }
    countKnown(market, dayStart, end)
  }
}

/** Adds the time until `to` to the known time of the date. */
function countKnown(market: MarketKnowledge, dayStart: bigint, to: bigint): void {
  const from = later(market.knownFrom, dayStart)
  market.firstKnown ??= [from, to]
  market.knownNs += to - from
}

/** The known time within what the file covers. */
function knownSince({ knownNs, firstKnown }: MarketKnowledge, coversFrom: bigint): bigint {
  if (firstKnown === undefined || firstKnown[0] >= coversFrom) return knownNs
  const [from, to] = firstKnown
  return knownNs - ((to < coversFrom ? to : coversFrom) - from)
}
