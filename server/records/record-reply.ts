// The reply of a record endpoint: the stream of a worker, with the headers of its format and page.

import { type FormatName, OUTPUT_FORMATS } from '../../shared/formats.ts'
import { ApiError } from '../../shared/errors.ts'
import { lobSourceNames } from '../../shared/lob-sources.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import { type LakeChoice, notHeld, refuseNotHeld } from '../lake/lake-choice.ts'
import { datasetOf } from '../../shared/record-schema.ts'
import { utcDateOf } from '../../shared/utc-date.ts'
import { type LakeVersions, versionHeader } from '../lake/lake-versions.ts'
import type { DateSpan, FileSelection } from '../lake/version-list.ts'
import type { RecordQuery, TradeQuery } from '../../shared/record-task.ts'
import {
  notModifiedReply,
  type Reply,
  type ReplyHeaders,
  type RequestContext,
  validatorHeaders,
} from '../http/endpoint.ts'
import { nextLink } from '../http/next-link.ts'
import type { RecordAnswers } from './record-answers.ts'
import type { RecordValidators } from './record-validators.ts'

export interface RecordReplyOptions {
  readonly path: string
  /** Whether the request itself states its whole range, so that it means the same range later. */
  readonly isFixed: boolean
  /** The request's parameters; every default that depends on the time is filled in. */
  readonly parameters: Readonly<Record<string, string | number | readonly string[] | undefined>>
  /** Parts of the file name for downloads. */
  readonly fileNameParts: readonly (string | null | undefined)[]
}

/** What the record endpoints use to answer. */
export interface RecordService {
  readonly answers: RecordAnswers
  readonly validators: RecordValidators
  /** The part of the lake that this replica holds; null for all. */
  readonly choice?: LakeChoice | null
  readonly versions: LakeVersions
}

/** Runs a query and resolves when its first chunk has arrived, or when the client turns out to have the answer. */
export async function recordReply(
  { answers, validators, choice = null, versions }: RecordService,
  query: RecordQuery,
  context: RequestContext,
  options: RecordReplyOptions,
): Promise<Reply> {
  if (query.kind === 'observations') refuseNotHeld(choice, { series: null, fromMs: query.fromMs })
  if (query.kind === 'candles') {
    const names = [query.series, query.event, query.market].filter((name) => name !== null)
    refuseNotHeld(choice, { series: names.map(seriesOfTicker), fromMs: query.fromMs })
  }
  if (query.kind === 'trades') refuseNotHeld(choice, { series: seriesOfTrades(query), fromMs: query.fromMs })
  const { headOnly, held, signal, client } = context
  const { isFixed, parameters } = options
  const version = typeof parameters['version'] === 'string' ? parameters['version'] : undefined
  const dataset = datasetOf(query.kind)
  const isPinned = dataset !== undefined && version !== undefined
  const pin = isPinned ? versions.pin(dataset, version, datesOf(query)) : undefined
  const request = { headOnly, held, signal, client, isFixed, pin }
  const { head, stream } = await answers.open(query, request).catch((error: unknown) => {
    const isElsewhere = choice !== null && choice.series !== null && isUnplaced(query)
    throw isElsewhere && error instanceof ApiError && error.code === 'unknown_market'
      ? notHeld(choice)
      : error
  })
  const { nextOffset, identity, isHeld } = head
  const validator = identity === null ? undefined : validators.validatorOf(identity)
  if (isHeld && validator !== undefined) {
    await stream.close()
    return notModifiedReply(validator)
  }
  const { contentType, isFile } = OUTPUT_FORMATS[query.format]
  const headers: ReplyHeaders = {
    'Content-Type': contentType,
    ...(isFile ? { 'Content-Disposition': `attachment; filename="${fileName(options, query.format)}"` } : {}),
    ...(nextOffset === null ? {} : { Link: nextLink(options.path, { ...parameters, offset: nextOffset }) }),
    ...(validator === undefined ? {} : validatorHeaders(validator)),
    ...(dataset && versionHeader(versions, dataset, head, version, selectionOf(query, head))),
  }
  return { status: 200, headers, stream }
}

/** The series that a request for trades may mean; null if the market's id does not contain it. */
function seriesOfTrades(query: TradeQuery): readonly string[] | null {
  const { source, series, event, market } = query
  if (!lobSourceNames(source).isSeriesInId) return series === null ? null : [series]
  return [series, event, market].filter((name) => name !== null).map(seriesOfTicker)
}

/** Whether a request names a market that may belong to any series. */
function isUnplaced(query: RecordQuery): boolean {
  return query.kind === 'trades' && query.series === null && !lobSourceNames(query.source).isSeriesInId
}

/** A date gets trades until it is closed. For records, the files state up to which instant they have all rows. */
function datesOf(query: RecordQuery): DateSpan | undefined {
  if (query.kind !== 'trades') return undefined
  return { first: utcDateOf(query.fromMs), last: utcDateOf(query.toMs - 1) }
}

/** Other datasets lose no files, and the files of their answers depend on the store, too. */
function selectionOf(
  query: RecordQuery,
  { series }: { readonly series: readonly string[] | null },
): FileSelection | undefined {
  const dates = datesOf(query)
  return query.kind === 'trades' && dates !== undefined ? { source: query.source, series, dates } : undefined
}

/** `candles_KXHIGHNY_2026-07-01.csv`, with only characters that need no quoting. */
function fileName({ fileNameParts }: RecordReplyOptions, format: FormatName): string {
  const parts = fileNameParts.filter((part) => part !== null && part !== undefined && part !== '')
  return `${parts.join('_').replaceAll(/[^A-Za-z0-9._-]/g, '-')}.${format}`
}
