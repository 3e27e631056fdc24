// GET /api/v1/lob: order-book snapshots, rebuilt by a worker while they are sent. The worker plans, checks and encodes;
// here parameters become its query, and its head becomes the headers of the answer.

import { lobSourceNames } from '../../shared/lob-sources.ts'
import { type LakeChoice, notHeld, refuseNotHeld } from '../lake/lake-choice.ts'
import { ApiError } from '../../shared/errors.ts'
import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import type { LobCatalogueEntry, LobHead, LobQuery } from '../../shared/lob-task.ts'
import { MS_PER_DAY, utcDateStartMs } from '../../shared/utc-date.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import {
  defineEndpoint,
  type Endpoint,
  notModifiedReply,
  type ReplyHeaders,
  validatorHeaders,
} from '../http/endpoint.ts'
import { heldIdentities } from '../http/etag.ts'
import { quote } from '../query/parameter-parser.ts'
import type { LobPool } from '../lob/lob-pool.ts'
import { LOB_DOCUMENTATION } from './lob-documentation.ts'
import { LOB_PARAMETERS, lobQueryOf, lobRule } from './lob-parameters.ts'

/**
 * An order-book answer never changes once every date of it has been over for so long and its files have lain untouched
 * for so long: late recordings are imported within it.
 */
const LOB_FINAL_DATE_AGE_MS = 48 * 60 * 60 * 1000
const LOB_FINAL_FILE_AGE_MS = 24 * 60 * 60 * 1000

/** `lob_KXHIGHNY_2026-07-01_60s.csv`; a range has both its dates, an hour `_h05`. */
function fileName(query: LobQuery): string {
  const subject = (query.market ?? query.series ?? '').replaceAll(':', '_')
  const first = query.dates[0]
  const last = query.dates.at(-1)
  const dates = first === last ? first : `${first}_${last}`
  const hour = query.hour === null ? '' : `_h${String(query.hour).padStart(2, '0')}`
  return `lob_${subject}_${dates}${hour}_${query.intervalS}s.${query.format}`
}

function replyHeaders(query: LobQuery, missingDates: readonly string[]): ReplyHeaders {
  const { contentType, isFile } = OUTPUT_FORMATS[query.format]
  return {
    'Content-Type': contentType,
    ...(isFile ? { 'Content-Disposition': `attachment; filename="${fileName(query)}"` } : {}),
    ...(missingDates.length > 0 ? { 'Missing-Dates': missingDates.join(',') } : {}),
  }
}

/** What the order-book endpoint asks the catalogue. */
export interface LobCatalogue {
  /** What is known of the markets a query is about; null when nothing is. */
  findForLob(query: LobQuery): LobCatalogueEntry | null
  /** Whether the market, series or event of a query is in the catalogue. */
  knowsForLob(query: LobQuery): boolean
}

export interface LobEndpointOptions {
  readonly pool: LobPool
  readonly catalogue: LobCatalogue
  readonly cachePolicy: CachePolicy
  readonly version: string
  /** What this replica holds of the lake; null for all. */
  readonly choice?: LakeChoice | null
}

/**
 * Whether an answer can never change: every date asked for has been over for two days, none lacks its file, and the
 * newest of the files that it is made from has lain untouched for a day. Recordings that come in late are imported
 * within that time; who replaces files of older dates has to purge the caches in front of the server.
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

/** A name that only the catalogue knows is no unknown name: there is no data for it. What names a parameter says more. */
function refusalOf(error: unknown, query: LobQuery, catalogue: LobCatalogue): unknown {
  const isUnknown =
    error instanceof ApiError && (error.code === 'unknown_market' || error.code === 'unknown_series')
  if (!isUnknown || error.errors.length > 0 || !catalogue.knowsForLob(query)) return error
  const subject = query.market ?? query.series ?? ''
  return new ApiError('no_data', `No order book of ${query.source} ${quote(subject)} has been recorded.`)
}

/** Where an id does not say its series, only the lake's search can tell whether this replica holds the market. */
function seriesAsked({ source, market, series }: LobQuery, entry: LobCatalogueEntry | null): string[] | null {
  const { seriesOf, isSeriesInId } = lobSourceNames(source)
  if (market !== null && !isSeriesInId) return null
  return [seriesOf(market ?? series ?? ''), series, entry?.series].filter((name) => typeof name === 'string')
}

export function lobEndpoint(options: LobEndpointOptions): Endpoint {
  const { pool, catalogue, cachePolicy, version, choice = null } = options
  return defineEndpoint({
    path: '/api/v1/lob',
    summary: 'Order-book snapshots at a regular interval, rebuilt from recorded deltas.',
    parameters: LOB_PARAMETERS,
    rule: lobRule,
    documentation: LOB_DOCUMENTATION,
    async handle(values, { headOnly, ifNoneMatch, signal, client }) {
      const query = lobQueryOf(values)
      const entry = catalogue.findForLob(query)
      const asked = seriesAsked(query, entry)
      refuseNotHeld(choice, { series: asked, fromMs: Date.parse(query.dates[0]!) })
      const held = ifNoneMatch === '' ? [] : heldIdentities(ifNoneMatch)
      try {
        const stream = await pool.open(query, {
          headOnly,
          catalogue: entry,
          validation: { seed: version, held },
          signal,
          client,
        })
        const { head } = stream
        const isFinal = isFinalAnswer(query.dates, head, Date.now())
        const cacheControl = isFinal ? cachePolicy.immutable : cachePolicy.revalidate
        const validator = { etag: `"${head.identity}"`, cacheControl }
        if (head.isHeld) {
          await stream.close()
          return notModifiedReply(validator)
        }
        return {
          status: 200,
          headers: { ...replyHeaders(query, head.missingDates), ...validatorHeaders(validator) },
          stream,
        }
      } catch (error) {
        const refusal = refusalOf(error, query, catalogue)
        const mayBeElsewhere = refusal instanceof ApiError && refusal.status === 404 && asked === null
        throw mayBeElsewhere && (choice?.series ?? null) !== null ? notHeld(choice!) : refusal
      }
    },
  })
}
