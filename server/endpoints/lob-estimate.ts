// GET /api/v1/lob/estimate: the cost of an order-book answer, and how to cut one that is too large. It takes the same
// parameters as the answer.

import { formatNames, OUTPUT_FORMATS } from '../../shared/formats.ts'
import { LOB_INTERVAL_S_MAX } from '../../shared/limits.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import type { LobHead, LobQuery } from '../../shared/lob-task.ts'
import { rowLimitProblem } from '../../workers/lob/plan.ts'
import { type EndpointDocumentation, type JsonSchema, objectSchema } from '../http/documentation.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import { headNow } from '../lob/lob-parts.ts'
import { estimatedBytes, sampleQueries, sampleSize } from '../lob/size-sample.ts'
import { LOB_PATH, type LobService, openingOf, refusalOf } from './lob.ts'
import { LOB_ERRORS } from './lob-documentation.ts'
import { LOB_PARAMETERS, lobQueryOf, lobRule } from './lob-parameters.ts'
import { VERSION_PARAMETER, versioned } from './version-parameter.ts'

const COUNT: JsonSchema = { type: 'integer', minimum: 0 }

const DOCUMENTATION: EndpointDocumentation = {
  tag: 'Order books',
  description:
    'Rows, files and row groups are exact. Bytes are those of the uncompressed body: measured if the answer is small, estimated from a sample of its hours if it is large.',
  schema: objectSchema({
    format: { type: 'string', enum: formatNames() },
    rows: { ...COUNT, description: 'Rows of the answer.' },
    bytes: { ...COUNT, description: 'Bytes of the answer, estimated.' },
    files: { type: 'array', items: { type: 'string' }, description: 'Files below the root of the lake.' },
    row_groups: { ...COUNT, description: 'Row groups of these files that may have to be decoded.' },
    missing_dates: {
      type: 'array',
      items: { type: 'string', format: 'date' },
      description: 'Dates without a file.',
    },
    allowed: { type: 'boolean', description: 'Whether the rows are within the limit of the format.' },
    rows_max: { ...COUNT, description: 'The limit of the format.' },
    detail: {
      type: ['string', 'null'],
      description: 'The error of /lob for this request; null if it is allowed.',
    },
    cut: objectSchema(
      {
        formats: { type: 'array', items: { type: 'string' } },
        interval: {
          type: ['integer', 'null'],
          description: 'Smallest sufficient interval that divides a day, in seconds.',
        },
        days: { type: ['integer', 'null'], description: 'Number of dates that one request may have.' },
      },
      'Changes that each make the request allowed on their own; null for a change that cannot.',
    ),
  }),
  errors: LOB_ERRORS,
  examples: [
    {
      title: 'A day of a series, every second, as json',
      values: { series: 'KXHIGHNY', date: '2026-07-01', interval: 1 },
    },
    {
      title: 'Three days of a market as parquet',
      values: { market: 'KXHIGHNY-26JUL01-B81.5', from: '2026-07-01', to: '2026-07-03', format: 'parquet' },
    },
    {
      title: 'A date that was not recorded',
      values: { series: 'KXHIGHNY', date: '2026-06-01' },
      status: 404,
    },
  ],
  exampleRecord: {
    format: 'json',
    rows: 734394,
    bytes: 328617142,
    files: [`lob/source=${lobSources()[0]}/series=KXHIGHNY/date=2026-07-01/lob.parquet`],
    row_groups: 24,
    missing_dates: [],
    allowed: false,
    rows_max: 50000,
    detail:
      'The request would return 734394 rows; json answers at most 50000. Ask for format=ndjson, csv or parquet (up to 500000 rows), a larger interval, one hour, fewer dates, a single market or the first rows with limit.',
    cut: { formats: [], interval: 15, days: null },
  },
}

type HeadOf = (query: LobQuery) => Promise<LobHead>

/** The shortest longer interval that keeps the rows within the limit; null if there is none. */
async function allowedInterval(query: LobQuery, rows: number, headOf: HeadOf): Promise<number | null> {
  const { rowsMax } = OUTPUT_FORMATS[query.format]
  for (let interval = query.intervalS + 1; interval <= LOB_INTERVAL_S_MAX; interval++) {
    if (86_400 % interval !== 0 || (rows * query.intervalS) / interval > rowsMax) continue
    if ((await headOf({ ...query, intervalS: interval })).rows <= rowsMax) return interval
  }
  return null
}

async function cutOf(query: LobQuery, { rows, outline }: LobHead, headOf: HeadOf) {
  const { rowsMax } = OUTPUT_FORMATS[query.format]
  const days = Math.floor(rowsMax / outline!.dateRowsMax)
  return {
    formats: formatNames().filter((name) => rows <= OUTPUT_FORMATS[name].rowsMax),
    interval: await allowedInterval(query, rows, headOf),
    days: query.dates.length > 1 && days > 0 ? days : null,
  }
}

export function lobEstimateEndpoint(service: LobService): Endpoint {
  return defineEndpoint({
    path: `${LOB_PATH}/estimate`,
    summary: 'Rows, bytes and files of an order-book answer, and how to cut one that is too large.',
    parameters: [...LOB_PARAMETERS, VERSION_PARAMETER],
    rule: versioned('lob', lobRule),
    documentation: DOCUMENTATION,
    async handle(values, context) {
      const query = lobQueryOf(values)
      const opening = openingOf(service, query, context, values.version)
      const validation = { ...opening.validation, held: [] }
      const options = { ...opening, validation, headOnly: false, isEstimate: true }
      const headOf: HeadOf = async (asked) => headNow(service.pool, asked, options)
      try {
        const head = await headOf(query)
        const { rows, files, missingDates } = head
        const sample = await sampleSize(sampleQueries(query, head), async (some) =>
          service.pool.open(some, options),
        )
        const detail = rowLimitProblem(query, head)
        return jsonReply({
          format: query.format,
          rows,
          bytes: estimatedBytes(sample, rows),
          files,
          row_groups: head.outline!.rowGroups,
          missing_dates: missingDates,
          allowed: detail === null,
          rows_max: OUTPUT_FORMATS[query.format].rowsMax,
          detail,
          cut:
            detail === null ? { formats: [], interval: null, days: null } : await cutOf(query, head, headOf),
        })
      } catch (error) {
        throw refusalOf(error, query, service)
      }
    },
  })
}
