// GET /api/v1/coverage and GET /api/v1/gaps: when the recorded order books are known.

import {
  COVERAGE_FIELDS_BY,
  COVERAGE_PERIODS,
  type CoveragePeriod,
  type GapCause,
} from '../../shared/coverage.ts'
import { LIST_LIMIT_DEFAULT } from '../../shared/limits.ts'
import { lobKey } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import type { CoverageQuery } from '../../shared/record-task.ts'
import { defineEndpoint, type Endpoint, type RequestContext } from '../http/endpoint.ts'
import { refuseNotHeld } from '../lake/lake-choice.ts'
import { openFromDate } from '../lake/lake-versions.ts'
import { type ParameterRule, quote } from '../query/parameter-parser.ts'
import type { Parameter, ParameterValues } from '../query/parameters.ts'
import { recordReply, type RecordService } from '../records/record-reply.ts'
import { type LobCatalogue, refusalOf, seriesAsked } from './lob.ts'
import { DATE_RANGE_PARAMETERS, SELECTOR_PARAMETERS, selectorRule } from './lob-parameters.ts'
import { recordDocumentation } from './record-documentation.ts'
import {
  checkDateRange,
  checkLimit,
  columnNames,
  columnsParameter,
  FORMAT_PARAMETER,
  limitParameter,
  OFFSET_PARAMETER,
} from './record-parameters.ts'

/** Catalogue entries are requested by dates; these are before and after all recorded ones. */
const ALL_DATES = ['2000-01-01', '2199-12-31'] as const

const [FROM, TO] = DATE_RANGE_PARAMETERS

const SUBJECT_PARAMETERS = [
  ...SELECTOR_PARAMETERS,
  FROM,
  { ...TO, description: `${TO.description} With from and to, dates without a file are listed too.` },
] as const satisfies readonly Parameter[]

const PAGE_PARAMETERS = [limitParameter(LIST_LIMIT_DEFAULT), OFFSET_PARAMETER] as const

const COVERAGE_PARAMETERS = [
  ...SUBJECT_PARAMETERS,
  {
    name: 'by',
    description: 'One row for each hour or for each date of a market.',
    schema: { type: 'string', enum: COVERAGE_PERIODS, default: 'day' },
  },
  FORMAT_PARAMETER,
  columnsParameter('coverage'),
  ...PAGE_PARAMETERS,
] as const satisfies readonly Parameter[]

const GAPS_PARAMETERS = [
  ...SUBJECT_PARAMETERS,
  FORMAT_PARAMETER,
  columnsParameter('gaps'),
  ...PAGE_PARAMETERS,
] as const satisfies readonly Parameter[]

type GapsParameters = typeof GAPS_PARAMETERS
type SubjectParameters = readonly [...typeof SUBJECT_PARAMETERS, ...typeof PAGE_PARAMETERS]

const subjectRule: ParameterRule<SubjectParameters> = (checked, report) => {
  selectorRule(checked, report)
  checkDateRange(checked.values, report)
  checkLimit(checked.values, report)
}

const coverageRule: ParameterRule<typeof COVERAGE_PARAMETERS> = ({ has, values }, report) => {
  subjectRule({ has, values }, report)
  const { by, columns = [] } = values
  if (by === undefined) return
  for (const column of columns)
    if (!COVERAGE_FIELDS_BY[by].includes(column))
      report('columns', `columns has ${quote(column)}, which by=${by} does not have.`)
}

const ERRORS = [
  'unknown_market',
  'unknown_series',
  'ambiguous_market',
  'no_data',
  'not_held',
  'lake_file_invalid',
  'lake_file_changed',
] as const

const ABOUT_FOREIGN =
  'For files of other writers: if the footer states no coverage, coverage extends from the first to the last row; without receive times, the lags are null; without keyframes, a book is carried over only from the date before.'

const COVERAGE_DOCUMENTATION = recordDocumentation('coverage', {
  tag: 'Order books',
  description: `Rows are ordered by date, market_id and hour. The figures come from the footers of the files; files of earlier versions, which lack them, are read once. A page may have fewer rows than limit: follow the Link header. ${ABOUT_FOREIGN}`,
  errors: ERRORS,
  examples: [
    { title: 'The dates of a series', values: { series: 'KXHIGHNY' } },
    { title: 'The hours of a market', values: { market: 'KXHIGHNY-26JUL01-B81.5', by: 'hour' } },
    { title: 'A column of the other period', values: { series: 'KXHIGHNY', columns: 'hour' }, status: 400 },
  ],
  exampleRecord: {
    market_id: 'KXHIGHNY-26JUL01-B79.5',
    date: '2026-07-01',
    state: 'complete',
    condition: 'available',
    known_s: 86_400,
    gap_s: 0,
    gaps: 0,
    events: 449,
    first_book_ts: 1_782_864_000_000_000_000,
    snapshots: 0,
    recv_lag_p50_ms: 6.32,
    recv_lag_p99_ms: 131,
    file: lobKey(lobSources()[0], 'KXHIGHNY', '2026-07-01'),
  },
})

const GAPS_DOCUMENTATION = recordDocumentation('gaps', {
  tag: 'Order books',
  description: `Times in which a market was listed and its book is unknown, ordered by from_ts and market_id. Less than a second without a recording is left out. ${ABOUT_FOREIGN}`,
  errors: ERRORS,
  examples: [
    { title: 'The gaps of an event', values: { series: 'KXHIGHCHI-26JUL02' } },
    { title: 'A series that is not in the lake', values: { series: 'KXNOSUCH' }, status: 404 },
  ],
  exampleRecord: {
    market_id: 'KXHIGHCHI-26JUL02-B88.5',
    from_ts: 1_783_015_927_304_000_000,
    to_ts: 1_783_016_022_911_000_000,
    cause: 'interrupted' satisfies GapCause,
  },
})

interface CoverageService {
  readonly service: RecordService
  readonly catalogue: LobCatalogue
}

async function reply(
  { service, catalogue }: CoverageService,
  path: string,
  kind: CoverageQuery['kind'],
  by: CoveragePeriod,
  values: ParameterValues<GapsParameters>,
  context: RequestContext,
) {
  const { source, market = null, series = null, from = null, to = null } = values
  const asked = { source, market, series, dates: ALL_DATES }
  const entry = catalogue.findForLob(asked)
  refuseNotHeld(service.choice ?? null, {
    series: seriesAsked(asked, entry),
    fromMs: from === null ? Infinity : Date.parse(from),
  })
  const columns = values.columns ?? (kind === 'gaps' ? columnNames('gaps') : COVERAGE_FIELDS_BY[by])
  const place = { market, series, from, to, by, openFrom: openFromDate(), catalogue: entry }
  try {
    return await recordReply(service, { ...values, ...place, kind, columns }, context, {
      path,
      isFixed: true,
      parameters: { ...values, ...(kind === 'coverage' ? { by } : {}) },
      fileNameParts: [kind, (market ?? series ?? '').replaceAll(':', '_')],
    })
  } catch (error) {
    throw refusalOf(error, asked, { catalogue, choice: service.choice ?? null })
  }
}

export function coverageEndpoint(service: CoverageService): Endpoint {
  const path = '/api/v1/coverage'
  return defineEndpoint({
    path,
    summary: 'How much of each hour or date of a market is known.',
    parameters: COVERAGE_PARAMETERS,
    rule: coverageRule,
    documentation: COVERAGE_DOCUMENTATION,
    handle: async ({ by, ...values }, context) =>
      reply(service, path, 'coverage', by, values as never, context),
  })
}

export function gapsEndpoint(service: CoverageService): Endpoint {
  const path = '/api/v1/gaps'
  return defineEndpoint({
    path,
    summary: 'When the book of a market is unknown.',
    parameters: GAPS_PARAMETERS,
    rule: (checked, report) => subjectRule(checked, report),
    documentation: GAPS_DOCUMENTATION,
    handle: async (values, context) => reply(service, path, 'gaps', 'day', values, context),
  })
}
