// A strand of a file in the lake as spans that can be put together anew: what it was made of, where the ledger knows.

import { outlineOf } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { StatedStrand } from '../lake/lob-evidence.ts'
import type { LakeDateOutline } from '../lake/lob-file-evidence.ts'
import type { ConnectionEnds } from './connection-ends.ts'
import type { HeardSpan } from './ledger-file.ts'
import type { LakeFile } from './lake-records.ts'
import { NO_MARKETS, dayOf, isSilent } from './series-spans.ts'
import type { SeriesSpan } from './series-spans.ts'

export interface OutlinedFile extends LakeFile {
  readonly outline: LakeDateOutline
}

/**
 * The strand's parts in feed order; one where `heard` does not tell what it was made of. Where an import was killed when its
 * rows were published and its ledger was not, `heard` ends before the strand, which then is a part itself. Where the file
 * was put back from an older copy, `heard` goes on behind the strand, and the rows of that are gone.
 */
export function strandParts(
  strand: StatedStrand & FeedSpan,
  allHeard: readonly HeardSpan[],
  file: OutlinedFile,
  ends: ConnectionEnds,
): SeriesSpan[] {
  const heard = allHeard.filter((part) => endsWithin(part, strand))
  const { date, path, outline } = file
  const ownIds = new Set(outline.markets)
  const { isTurned } = strand
  // As the file's prices were taken.
  const common = { isTurned, name: path, previous: undefined, ownIds, date }
  if (heard.length === 0) {
    const isCarried = strand.fromTs === dayOf(date).start
    return [
      { ...wholePart(strand, file), carriedAt: isCarried ? strand.fromTs : undefined, fromTs: strand.fromTs },
    ]
  }
  const isWhole = heard.some(({ lastRecvTs }) => lastRecvTs >= strand.lastRecvTs)
  const parts = heard.map((part, place) => ({
    ...outlineOf(part),
    ...common,
    isBegun: part.isBegun || (place === 0 && strand.isBegun),
    // What a word ended is told anew: messages that came before it may have been imported since.
    isEnded:
      part.isEnded ||
      (isWhole && place === heard.length - 1 && strand.isEnded && !ends.mayEnd(part.lastRecvTs)),
    previousKey: part.previousKey,
    isPreviousSure: part.isPreviousSure,
    beforeHole: part.beforeHole,
    afterHole: part.afterHole,
    connection: part.connection,
    marketIds: part.marketIds,
    end: part.end,
    // Since when the others speak of the series shows when they are read.
    fromTs: place === 0 ? strand.fromTs : undefined,
  }))
  return isWhole ? parts : [...parts, wholePart(strand, file)]
}

function endsWithin(part: FeedSpan, strand: FeedSpan): boolean {
  return strand.sid === null ? part.lastRecvTs <= strand.lastRecvTs : part.lastSeq <= strand.lastSeq
}

/** The strand as the file outlines it. */
function wholePart(strand: StatedStrand & FeedSpan, { date, path, outline }: OutlinedFile): SeriesSpan {
  const ownIds = new Set(outline.markets)
  return {
    ...outlineOf(strand),
    name: path,
    previous: undefined,
    ownIds,
    date,
    marketIds: strand.sid === null ? ownIds : NO_MARKETS,
    isPreviousSure: true,
    connection: undefined,
    end: undefined,
    carriedAt: undefined,
    fromTs: undefined,
  }
}

/** The span whose last message is a silent strand's. */
export function lastSpanOf(
  spans: readonly SeriesSpan[],
  { sid, lastSeq, lastRecvTs }: FeedSpan,
): number | undefined {
  const number = spans.findLastIndex(
    (span) =>
      span.sid === sid && span.lastSeq === lastSeq && span.lastRecvTs === lastRecvTs && !isSilent(span),
  )
  return number === -1 ? undefined : number
}
