// /api/v1/lob/receipt: size and digest of an order-book answer, and of its blocks.

import { canonicalParameters } from '../../shared/lob-canonical.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import { defineEndpoint, type Endpoint, jsonReply, validatorHeaders } from '../http/endpoint.ts'
import { type EndpointDocumentation, objectSchema } from '../http/documentation.ts'
import { strongEtag } from '../http/etag.ts'
import { versionHeader } from '../lake/lake-versions.ts'
import { receiptOf } from '../lob/lob-parts.ts'
import { LOB_PATH, type LobService, openingOf, refusalOf } from './lob.ts'
import { LOB_ERRORS } from './lob-documentation.ts'
import { LOB_PARAMETERS, lobQueryOf, lobRule } from './lob-parameters.ts'
import { VERSION_HEADER, VERSION_PARAMETER, versioned } from './version-parameter.ts'

const SHA256 = { type: 'string', description: 'SHA-256, 64 hex digits.' } as const
const TS = { type: ['integer', 'null'], format: 'int64' } as const

/** Whole seconds as nanoseconds: exact, since they are multiples of 512. */
function tsOf(seconds: number | null): number | null {
  return seconds === null ? null : seconds * NS_PER_SECOND
}

const DOCUMENTATION: EndpointDocumentation = {
  tag: 'Order books',
  description:
    'The parameters are those of /api/v1/lob. Making a receipt takes about as long as the answer; afterwards it is known, and the answer has Content-Length and Repr-Digest unless it is compressed.',
  schema: objectSchema({
    version: {
      type: ['string', 'null'],
      description:
        'Version of the lake; null if a file of the answer is still open, or while the server has not read all of its files.',
    },
    etag: { type: 'string', description: 'ETag of the answer without compression.' },
    parameters: { type: 'string', description: 'The query of the request in canonical form.' },
    format: { type: 'string', description: 'Format of the answer.' },
    rows: { type: 'integer', description: 'Rows of the answer.' },
    bytes: { type: 'integer', description: 'Bytes of the body.' },
    sha256: SHA256,
    first_ts: { ...TS, description: 'ts of the first row; null without rows.' },
    last_ts: { ...TS, description: 'ts of the last row; null without rows.' },
    markets: { type: 'integer', description: 'Markets that have rows.' },
    blocks: {
      type: 'array',
      description:
        'Parts that make up the body: hours, or dates whose files have no keyframes. Empty for parquet.',
      items: objectSchema({
        hour: { type: 'string', format: 'date-time', description: 'Start of the hour or date.' },
        rows: { type: 'integer', description: 'Rows of the block.' },
        bytes: { type: 'integer', description: 'Bytes of the block.' },
        sha256: SHA256,
      }),
    },
    known_s: {
      type: 'number',
      description:
        'Seconds in which the books are known, summed over all markets; with after or limit, only in the time of the rows.',
    },
    gap_s: { type: 'number', description: 'Seconds in which the books are lost, summed likewise.' },
    missing_dates: {
      type: 'array',
      items: { type: 'string', format: 'date' },
      description: 'Requested dates without a file.',
    },
  }),
  headers: { ETag: 'Identifies the receipt.', ...VERSION_HEADER },
  errors: [...LOB_ERRORS, 'too_many_rows'],
  examples: [
    {
      title: 'One row an hour of one market',
      values: {
        market: 'KXHIGHNY-26JUL01-B81.5',
        date: '2026-07-01',
        hour: 18,
        interval: 1800,
        format: 'csv',
      },
    },
    {
      title: 'A series that is not in the lake',
      values: { series: 'KXNOSUCH', date: '2026-07-01' },
      status: 404,
    },
  ],
  // The version and the tag differ from lake to lake.
  exampleRecord: {
    version: 'lob-4W1BqSXlK0zv',
    etag: '"veYSwCBO7zQHZdD-XZYlxt"',
    parameters: `market=KXHIGHNY-26JUL01-B81.5&source=${lobSources()[0]}&from=2026-07-01&to=2026-07-01&interval=1800&levels=10&hour=18&format=csv&columns=ts,market_id,best_bid,best_ask,spread,mid,bids,asks&nulls=false`,
    format: 'csv',
    rows: 2,
    bytes: 869,
    sha256: '1e95638b9b2aa3eed004e80b88e261cab61fea2ba938525323d6e4de219245f3',
    first_ts: 1_782_928_800_000_000_000,
    last_ts: 1_782_930_600_000_000_000,
    markets: 1,
    blocks: [
      {
        hour: '2026-07-01T18:00:00Z',
        rows: 2,
        bytes: 869,
        sha256: '1e95638b9b2aa3eed004e80b88e261cab61fea2ba938525323d6e4de219245f3',
      },
    ],
    known_s: 3_600,
    gap_s: 0,
    missing_dates: [],
  },
}

export function lobReceiptEndpoint(service: LobService): Endpoint {
  return defineEndpoint({
    path: `${LOB_PATH}/receipt`,
    summary: 'Rows, bytes and digest of an order-book answer.',
    parameters: [...LOB_PARAMETERS, VERSION_PARAMETER],
    rule: versioned('lob', lobRule),
    documentation: DOCUMENTATION,
    async handle(values, context) {
      const query = lobQueryOf(values)
      try {
        const opening = openingOf(service, query, context, values.version)
        const { head, receipt } = (await receiptOf(service, query, opening))!
        const { knownS, gapS } = head.bookTimes!
        const named = versionHeader(service.versions, 'lob', head, values.version)
        const version = named['Lake-Version'] ?? null
        const { headers, ...reply } = jsonReply({
          version,
          etag: `"${head.identity}"`,
          parameters: canonicalParameters(query),
          format: query.format,
          rows: receipt.rows,
          bytes: receipt.bytes,
          sha256: receipt.sha256,
          first_ts: tsOf(receipt.firstSeconds),
          last_ts: tsOf(receipt.lastSeconds),
          markets: receipt.markets,
          blocks: receipt.blocks.map(({ seconds, ...block }) => ({
            hour: new Date(seconds * 1000).toISOString().replace('.000', ''),
            ...block,
          })),
          known_s: knownS,
          gap_s: gapS,
          missing_dates: head.missingDates,
        })
        const etag = strongEtag('receipt', head.identity, version ?? '', `${knownS} ${gapS}`)
        // The times and the version may change while the files of the answer stay as they are.
        const validator = { etag, cacheControl: service.cachePolicy.revalidate }
        return { ...reply, headers: { ...headers, ...named, ...validatorHeaders(validator) } }
      } catch (error) {
        throw refusalOf(error, query, service)
      }
    },
  })
}
