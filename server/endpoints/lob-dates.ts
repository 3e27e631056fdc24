// /api/v1/lob/dates: the dates of a series that have order books.

import { lobSourceNames } from '../../shared/lob-sources.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import { type EndpointDocumentation, objectSchema } from '../http/documentation.ts'
import { type LakeChoice, refuseNotHeld } from '../lake/lake-choice.ts'
import { lobDates } from '../lob/lob-dates.ts'
import { type Parameter, textParameter } from '../query/parameters.ts'
import { checkNames, DATE_RANGE_PARAMETERS, SOURCE_PARAMETER } from './lob-parameters.ts'
import { PAGE_HEADERS, PAGE_PARAMETERS, pageReply } from './page-parameters.ts'
import { checkDateRange } from './record-parameters.ts'

const PATH = '/api/v1/lob/dates'
const PARAMETERS = [
  { ...textParameter('series', 'Series ticker, or the ticker of one event of a series.'), required: true },
  SOURCE_PARAMETER,
  ...DATE_RANGE_PARAMETERS,
  ...PAGE_PARAMETERS,
] as const satisfies readonly Parameter[]

const DOCUMENTATION: EndpointDocumentation = {
  tag: 'Order books',
  description:
    'The answer comes from the names and footers of the files. A date without a file is not listed.',
  schema: {
    type: 'array',
    items: objectSchema({
      date: { type: 'string', format: 'date', description: 'UTC date.' },
      state: {
        type: 'string',
        enum: ['closed', 'open', 'invalid'],
        description:
          'open: today or the day before, to which recordings may be added; invalid: the footer of the file cannot be read.',
      },
      bytes: { type: 'integer', description: 'Bytes of the file of the date, with all its markets.' },
      rows: {
        type: ['integer', 'null'],
        description:
          'Book events and keyframes in the file; for an event, those of its markets, or null if the footer does not list markets.',
      },
    }),
  },
  headers: { Link: PAGE_HEADERS['Link']! },
  errors: ['unknown_series', 'not_held'],
  examples: [
    { title: 'The dates of a series', values: { series: 'KXHIGHNY' } },
    {
      title: 'The dates of one event from a date on',
      values: { series: 'KXHIGHNY-26JUL02', from: '2026-07-02' },
    },
    { title: 'A series that is not in the lake', values: { series: 'KXNOSUCH' }, status: 404 },
  ],
  exampleRecord: { date: '2026-07-01', state: 'closed', bytes: 225_818, rows: 14_115 },
}

/** `choice` is the part of the lake that this replica holds; null for all. */
export function lobDatesEndpoint(lake: string, choice: LakeChoice | null): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'UTC dates of a series or event that have order books.',
    parameters: PARAMETERS,
    rule({ values }, report) {
      checkNames(values, report)
      checkDateRange(values, report)
    },
    documentation: DOCUMENTATION,
    async handle(values) {
      const { source, series, from } = values
      const held = [series, lobSourceNames(source).seriesOf(series)]
      refuseNotHeld(choice, { series: held, fromMs: from === undefined ? Infinity : Date.parse(from) })
      const { dates, hasMore } = await lobDates(lake, values)
      return pageReply(PATH, values, { reply: jsonReply(dates), hasMore })
    },
  })
}
