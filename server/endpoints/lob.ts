// GET /api/v1/lob: order-book snapshots, rebuilt by a worker while they are sent. The worker plans, checks and encodes. This
// code turns parameters into its query, and its head into the headers of the answer.

import { lobSourceNames } from '../../shared/lob-sources.ts'
import { type LakeChoice, notHeld, refuseNotHeld } from '../lake/lake-choice.ts'
import { type LakeVersions, openFromDate, versionHeader } from '../lake/lake-versions.ts'
import type { DateSpan } from '../lake/version-list.ts'
import { ApiError } from '../../shared/errors.ts'
import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import { canonicalParameters, textOfPlace } from '../../shared/lob-canonical.ts'
import type { LobCatalogueEntry, LobHead, LobQuery, MarketsAsked } from '../../shared/lob-task.ts'
import { MS_PER_DAY, utcDateOf, utcDateStartMs } from '../../shared/utc-date.ts'
import { partOf, readRange } from '../http/byte-range.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import {
  defineEndpoint,
  type Endpoint,
  notModifiedReply,
  type Reply,
  type ReplyHeaders,
  type RequestContext,
  type Validator,
  validatorHeaders,
} from '../http/endpoint.ts'
import { nextLink } from '../http/next-link.ts'
import { quote } from '../query/parameter-parser.ts'
import type { LobOpenOptions, LobPool } from '../lob/lob-pool.ts'
import { openPart } from '../lob/lob-parts.ts'
import { type LobReceipts, reprDigest } from '../lob/lob-receipts.ts'
import type { LobStream } from '../lob/lob-stream.ts'
import { LOB_DOCUMENTATION } from './lob-documentation.ts'
import { LOB_PARAMETERS, lobQueryOf, lobRule } from './lob-parameters.ts'
import { VERSION_PARAMETER, versioned } from './version-parameter.ts'

/**
 * An order-book answer is final once every date in it has been over, and its files unchanged, for these times: late
 * recordings are imported within them.
 */
const LOB_FINAL_DATE_AGE_MS = 48 * 60 * 60 * 1000
const LOB_FINAL_FILE_AGE_MS = 24 * 60 * 60 * 1000

/** `lob_KXHIGHNY_2026-07-01_60s.csv`; a range has both dates, an hour `_h05`. */
function fileName(query: LobQuery): string {
  const subject = (query.market ?? query.series ?? '').replaceAll(':', '_')
  const first = query.dates[0]
  const last = query.dates.at(-1)
  const dates = first === last ? first : `${first}_${last}`
  const hour = query.hour === null ? '' : `_h${String(query.hour).padStart(2, '0')}`
  return `lob_${subject}_${dates}${hour}_${query.intervalS}s.${query.format}`
}

/** The dates up to the last row that are only partly known, or still open: `degraded` and `pending` in /api/v1/coverage. */
function partialDatesOf({ dates }: LobQuery, { missingDates, partialDates, lastRow }: LobHead): string[] {
  const openFrom = openFromDate()
  const last = lastRow === null ? dates.at(-1)! : utcDateOf(lastRow.seconds * 1000)
  const isPending = (date: string): boolean =>
    openFrom <= date && date <= last && !missingDates.includes(date)
  return dates.filter((date) => partialDates.includes(date) || isPending(date))
}

function replyHeaders(query: LobQuery, head: LobHead): ReplyHeaders {
  const { contentType, isFile } = OUTPUT_FORMATS[query.format]
  const { missingDates } = head
  const partialDates = partialDatesOf(query, head)
  return {
    'Content-Type': contentType,
    ...(isFile ? { 'Content-Disposition': `attachment; filename="${fileName(query)}"` } : {}),
    ...(missingDates.length > 0 ? { 'Missing-Dates': missingDates.join(',') } : {}),
    ...(partialDates.length > 0 ? { 'Partial-Dates': partialDates.join(',') } : {}),
  }
}

/** What the order-book endpoint needs of the catalogue. */
export interface LobCatalogue {
  /** What the catalogue knows of a query's markets; null if it knows none. */
  findForLob(query: MarketsAsked): LobCatalogueEntry | null
  /** Whether the market, series or event of a query is in the catalogue. */
  knowsForLob(query: MarketsAsked): boolean
}

/** What the order-book endpoints share. */
export interface LobService {
  readonly pool: LobPool
  readonly receipts: LobReceipts
  readonly catalogue: LobCatalogue
  readonly cachePolicy: CachePolicy
  readonly version: string
  /** The part of the lake that this replica holds; null for all. */
  readonly choice?: LakeChoice | null
  readonly versions: LakeVersions
}

/**
 * Whether an answer can never change: every requested date has been over for two days and has its file, and the newest of the
 * files has been unchanged for a day. Late recordings are imported within that time. An operator who replaces files of older
 * dates has to purge the caches in front of the server.
 */
export function isFinalAnswer(dates: readonly string[], head: LobHead, nowMs: number): boolean {
  const lastDate = dates.at(-1) ?? ''
  const overSinceMs = nowMs - ((utcDateStartMs(lastDate) ?? nowMs) + MS_PER_DAY)
  return (
    head.missingDates.length === 0 &&
    overSinceMs >= LOB_FINAL_DATE_AGE_MS &&
    nowMs - head.writtenAtMs >= LOB_FINAL_FILE_AGE_MS
  )
}

/** If a market's id does not contain its series, only a search of the lake can tell whether this replica holds it. */
export function seriesAsked(
  { source, market, series }: MarketsAsked,
  entry: LobCatalogueEntry | null,
): string[] | null {
  const { seriesOf, isSeriesInId } = lobSourceNames(source)
  if (market !== null && !isSeriesInId) return null
  return [seriesOf(market ?? series ?? ''), series, entry?.series].filter((name) => typeof name === 'string')
}

/**
 * A name that the catalogue knows is not unknown but has no data, unless the error names a parameter, which is more precise. A
 * market that is not found may belong to another replica.
 */
export function refusalOf(
  error: unknown,
  query: MarketsAsked,
  service: Pick<LobService, 'catalogue' | 'choice'>,
): unknown {
  const { catalogue, choice = null } = service
  const refusal = isWithoutData(error, query, catalogue)
    ? new ApiError(
        'no_data',
        `No order book of ${query.source} ${quote(query.market ?? query.series ?? '')} has been recorded.`,
      )
    : error
  const isAnywhere = seriesAsked(query, catalogue.findForLob(query)) === null
  const mayBeElsewhere = refusal instanceof ApiError && refusal.status === 404 && isAnywhere
  return mayBeElsewhere && choice !== null && choice.series !== null ? notHeld(choice) : refusal
}

function isWithoutData(error: unknown, query: MarketsAsked, catalogue: LobCatalogue): boolean {
  const isUnknown =
    error instanceof ApiError && (error.code === 'unknown_market' || error.code === 'unknown_series')
  return isUnknown && error.errors.length === 0 && catalogue.knowsForLob(query)
}

export const LOB_PATH = '/api/v1/lob'

/**
 * The options for opening an answer of a query, without its part. `pinned` is the requested version.
 * @throws {ApiError} `not_held`, `unknown_version` or `not_pinnable`
 */
export function openingOf(
  { catalogue, version, choice = null, versions }: LobService,
  query: LobQuery,
  { headOnly, held, signal, client }: RequestContext,
  pinned?: string,
): LobOpenOptions {
  const entry = catalogue.findForLob(query)
  refuseNotHeld(choice, { series: seriesAsked(query, entry), fromMs: Date.parse(query.dates[0]!) })
  return {
    headOnly,
    catalogue: entry,
    validation: { seed: version, held },
    pin: pinned === undefined ? undefined : versions.pin('lob', pinned, datesOf(query)),
    signal,
    client,
  }
}

function datesOf({ dates }: LobQuery): DateSpan {
  return { first: dates[0]!, last: dates.at(-1)! }
}

export function validatorOf({ cachePolicy }: LobService, query: LobQuery, head: LobHead): Validator {
  const isFinal = isFinalAnswer(query.dates, head, Date.now())
  return {
    etag: `"${head.identity}"`,
    cacheControl: isFinal ? cachePolicy.immutable : cachePolicy.revalidate,
  }
}

/** Links to the receipt, and to the rows after those that `limit` allows. */
function linksOf(
  query: LobQuery,
  values: { readonly version?: string | undefined },
  { lastRow }: LobHead,
): string {
  const pinned = values.version === undefined ? '' : `&version=${values.version}`
  const receipt = `<${LOB_PATH}/receipt?${canonicalParameters(query)}${pinned}>; rel="describedby"`
  if (lastRow === null) return receipt
  return `${receipt}, ${nextLink(LOB_PATH, { ...values, after: textOfPlace(lastRow) })}`
}

export function lobEndpoint(service: LobService): Endpoint {
  return defineEndpoint({
    path: LOB_PATH,
    summary: 'Order-book snapshots at a regular interval, rebuilt from recorded deltas.',
    parameters: [...LOB_PARAMETERS, VERSION_PARAMETER],
    rule: versioned('lob', lobRule),
    documentation: LOB_DOCUMENTATION,
    async handle(values, context) {
      const query = lobQueryOf(values)
      const { isText } = OUTPUT_FORMATS[query.format]
      // The coding is chosen when the reply is sent. A coded form has other bytes than those of the receipt.
      const isPlain = !isText || context.coding === 'identity'
      const opening = openingOf(service, query, context, values.version)
      const replyOf = (stream: LobStream): Reply => {
        const { head } = stream
        const validator = validatorOf(service, query, head)
        if (head.isHeld) return notModifiedReply(validator)
        const known = isPlain ? service.receipts.last(query, opening.pin) : undefined
        const receipt = known?.identity === head.identity ? known.receipt : undefined
        stream.sizeBytes = receipt?.bytes
        const headers = {
          ...replyHeaders(query, head),
          ...validatorHeaders(validator),
          ...versionHeader(service.versions, 'lob', head, values.version),
          Link: linksOf(query, values, head),
          ...(isPlain && isText ? { 'Accept-Ranges': 'bytes' } : {}),
          ...(receipt === undefined ? {} : { 'Repr-Digest': reprDigest(receipt) }),
        }
        return { status: 200, headers, stream }
      }
      try {
        const range = isPlain && isText && !context.headOnly ? readRange(context.header('range')) : null
        const part =
          range === null ? null : await openPart(service, query, range, opening, context.header('if-range'))
        const stream = part?.stream ?? (await service.pool.open(query, opening))
        const reply = replyOf(stream)
        if (!('stream' in reply)) await stream.close()
        if (part === null || !('stream' in reply)) return reply
        return {
          status: 206,
          headers: { ...reply.headers, 'Content-Range': part.contentRange },
          stream: partOf(stream, part.skipBytes, part.sizeBytes),
        }
      } catch (error) {
        throw refusalOf(error, query, service)
      }
    },
  })
}
