// GET /api/v1/lob/at: the books at one instant, exact to the nanosecond, and the provenance of each.

import { instantOf } from '../feed/instant.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { INSTANT_STATES, type LobQuery, SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { NS_PER_MS, utcDateOf } from '../../shared/utc-date.ts'
import { type EndpointDocumentation, objectSchema } from '../http/documentation.ts'
import { defineEndpoint, type Endpoint, notModifiedReply, validatorHeaders } from '../http/endpoint.ts'
import { type ParameterRule, quote } from '../query/parameter-parser.ts'
import { type Parameter, textParameter } from '../query/parameters.ts'
import { instantMs } from '../query/time-range.ts'
import { LOB_PATH, type LobService, openingOf, refusalOf, validatorOf } from './lob.ts'
import { INSTANT_COLUMN_SCHEMAS, LOB_ERRORS } from './lob-documentation.ts'
import { versionHeader } from '../lake/lake-versions.ts'
import { checkNames, LOB_PARAMETERS } from './lob-parameters.ts'
import { VERSION_HEADER, VERSION_PARAMETER, versioned } from './version-parameter.ts'

/** The provenance has the state of the book. */
const ROW_SCHEMAS = Object.fromEntries(SNAPSHOT_COLUMNS.map((name) => [name, INSTANT_COLUMN_SCHEMAS[name]]))

const [MARKET, SERIES, SOURCE, , , , , LEVELS] = LOB_PARAMETERS

const AT_PARAMETERS = [
  {
    ...MARKET,
    description: 'One market, named as in /lob. Give exactly one of market, series and event.',
  },
  { ...SERIES, description: 'Series ticker: all its markets.' },
  textParameter('event', 'Ticker of one event of a series: all its markets.'),
  SOURCE,
  {
    ...textParameter(
      'ts',
      'The instant: RFC 3339 with a zone and up to nine places of a second (a + in it is written %2B), or nanoseconds since the Unix epoch in 19 digits.',
    ),
    required: true,
  },
  LEVELS,
  {
    name: 'by',
    description:
      'exchange: the events that happened by the instant. received: those that the recorder had received by then; the books of midnight count as received.',
    schema: { type: 'string', enum: ['exchange', 'received'], default: 'exchange' },
  },
] as const satisfies readonly Parameter[]

/** A 19-digit number of nanoseconds or an RFC 3339 instant. */
function nsOfText(text: string): bigint | undefined {
  return /^\d{19}$/.test(text) || instantMs(text) !== undefined ? instantOf(text) : undefined
}

const SELECTORS = ['market', 'series', 'event'] as const

const atRule: ParameterRule<typeof AT_PARAMETERS> = ({ has, values }, report) => {
  const given = SELECTORS.filter(has)
  const found = given.length === 0 ? 'none is given' : `${given.join(' and ')} are given`
  if (given.length !== 1)
    for (const name of given.length === 0 ? SELECTORS : given)
      report(name, `Exactly one of market, series and event is needed; ${found}.`)
  const { market, series, event, source, ts } = values
  checkNames({ market, series, source }, report)
  if (event !== undefined)
    checkNames({ series: event }, (_, detail) => report('event', detail.replace('series', 'event')))
  if (ts !== undefined && nsOfText(ts) === undefined)
    report(
      'ts',
      `ts must be an instant such as 2026-07-01T12:00:00.5Z (a + in it is written %2B) or nanoseconds since the Unix epoch in 19 digits, not ${quote(ts)}.`,
    )
}

const NS = { type: ['integer', 'null'], format: 'int64' } as const

const DOCUMENTATION: EndpointDocumentation = {
  tag: 'Order books',
  description:
    'One record for each market whose book has become known on that UTC date by then, ordered by market_id. At a whole second it is the row of /lob at interval=1. Only the row groups of the hour are read. Lake-Version names the version of the file. 64-bit integers are exact in the answer; clients that parse them as doubles round to 256 ns.',
  schema: {
    type: 'array',
    items: objectSchema({
      ...ROW_SCHEMAS,
      ts: {
        type: 'integer',
        format: 'int64',
        description: 'The instant asked for, ns since the Unix epoch.',
      },
      provenance: objectSchema({
        file: { type: 'string', description: 'The file below the root of the lake.' },
        row_group: {
          type: ['integer', 'null'],
          description: 'The row group of the last replayed row; null if no row of this file was replayed.',
        },
        keyframe_ts: {
          ...NS,
          description:
            'Time of the full book at which the replay begins; null if it comes from an earlier file.',
        },
        last_event_ts: {
          ...NS,
          description: 'Time of the last replayed event; null if no event followed the keyframe.',
        },
        last_received_ts: {
          ...NS,
          description:
            'When the recorder received this event; the time of the event if the recording has no receive time.',
        },
        sequence: {
          type: ['integer', 'null'],
          format: 'int64',
          description:
            "The exchange's sequence number of this event; the recording's own number if the exchange has none.",
        },
        events_applied: {
          type: 'integer',
          description: 'Number of replayed rows, including those of the keyframe.',
        },
        age_ms: {
          type: ['integer', 'null'],
          description: 'Whole milliseconds from the last event to the instant, by the clock that `by` names.',
        },
        state: {
          type: 'string',
          enum: INSTANT_STATES,
          description:
            'gap: unknown since a loss, and empty here. carried: from the file of an earlier date. closed: the book at the close. not_recorded: the last book before the recording ends.',
        },
      }),
    }),
  },
  headers: {
    ETag: 'Identifies the files and the query that the answer is made from.',
    ...VERSION_HEADER,
  },
  errors: LOB_ERRORS,
  examples: [
    {
      title: 'The books of one event at an instant, two levels a side',
      values: { event: 'KXHIGHNY-26JUL01', ts: '2026-07-01T18:10:00.25Z', levels: 2 },
    },
    {
      title: 'One market as received by an instant in nanoseconds',
      values: { market: 'KXHIGHNY-26JUL01-B81.5', ts: '1782929400123456789', by: 'received' },
    },
    {
      title: 'An instant without a zone is refused',
      values: { series: 'KXHIGHNY', ts: '2026-07-01T18:00:00' },
      status: 400,
    },
  ],
  exampleRecord: {
    ts: 1782929400250000000,
    market_id: 'KXHIGHNY-26JUL01-B79.5',
    best_bid: 0,
    best_ask: 2,
    spread: -1,
    mid: 0,
    bids: [],
    asks: [
      { price: 2, qty: 544 },
      { price: 3, qty: 3381 },
    ],
    provenance: {
      file: `lob/source=${lobSources()[0]}/series=KXHIGHNY/date=2026-07-01/lob.parquet`,
      row_group: 18,
      keyframe_ts: 1782928800000000000,
      last_event_ts: 1782929201322401000,
      last_received_ts: 1782929201326406000,
      sequence: 3404,
      events_applied: 34,
      age_ms: 198927,
      state: 'known',
    },
  },
}

export function lobAtEndpoint(service: LobService): Endpoint {
  return defineEndpoint({
    path: `${LOB_PATH}/at`,
    summary: 'Order books at one instant, exact to the nanosecond, with the provenance of each.',
    parameters: [...AT_PARAMETERS, VERSION_PARAMETER],
    rule: versioned('lob', atRule),
    documentation: DOCUMENTATION,
    async handle({ market, series, event, source, ts, levels, by, version }, context) {
      const ns = nsOfText(ts)!
      const query: LobQuery = {
        source,
        market: market ?? null,
        series: series ?? event ?? null,
        dates: [utcDateOf(Number(ns / NS_PER_MS))],
        intervalS: 1,
        levels,
        hour: null,
        format: 'json',
        columns: SNAPSHOT_COLUMNS,
        nulls: false,
        after: null,
        limit: null,
        at: { ns: String(ns), by },
      }
      try {
        const stream = await service.pool.open(query, openingOf(service, query, context, version))
        const validator = validatorOf(service, query, stream.head)
        if (!stream.head.isHeld)
          return {
            status: 200,
            headers: {
              'Content-Type': 'application/json',
              ...validatorHeaders(validator),
              ...versionHeader(service.versions, 'lob', stream.head, version),
            },
            stream,
          }
        await stream.close()
        return notModifiedReply(validator)
      } catch (error) {
        throw refusalOf(error, query, service)
      }
    },
  })
}
