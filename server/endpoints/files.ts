// /api/v1/files lists the files of the lake, so that other engines need not list directories and copies can be checked.

import { readdir } from 'node:fs/promises'
import { ApiError } from '../../shared/errors.ts'
import { DERIVED_DATASETS, LAKE_DATASETS } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { instantText } from '../../shared/utc-date.ts'
import { objectSchema } from '../http/documentation.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import { type DescribedFile, FileDescriptions, type FileSelection, lakeKeys } from '../lake/file-list.ts'
import { type LakeChoice, refuseNotHeld } from '../lake/lake-choice.ts'
import type { ParameterRule } from '../query/parameter-parser.ts'
import { dateParameter, type Parameter, type ParameterValues, textParameter } from '../query/parameters.ts'
import { PAGE_HEADERS, PAGE_PARAMETERS, pageReply } from './page-parameters.ts'
import { checkDateRange, checkName, stationCode } from './record-parameters.ts'

const PATH = '/api/v1/files'
/** A page ends before the file that would bring the bytes read above this limit: some seconds' work. */
const READ_BYTES_MAX = 256 * 1024 * 1024
/** The limit on requests that list the lake, or wait while another one reads files. */
const REQUESTS_MAX = 8

const FILES_PARAMETERS = [
  {
    name: 'dataset',
    description: 'Order books (lob), trades, candles or observations.',
    schema: { type: 'string', enum: LAKE_DATASETS },
    required: true,
  },
  {
    name: 'source',
    description: 'Only this exchange; for lob and trades.',
    schema: { type: 'string', enum: lobSources() },
  },
  textParameter('series', 'Only this series, as its directory names it; for lob, trades and candles.'),
  textParameter('station', 'Only this station, three letters or ICAO; for observations.'),
  dateParameter('from', 'First UTC date: files whose date, month or year ends before it are left out.'),
  dateParameter('to', 'Last UTC date: files whose date, month or year begins after it are left out.'),
  ...PAGE_PARAMETERS,
] as const satisfies readonly Parameter[]

type FilesParameters = typeof FILES_PARAMETERS

const DATASETS_OF = {
  source: DERIVED_DATASETS,
  series: [...DERIVED_DATASETS, 'candles'],
  station: ['observations'],
} as const

const filesRule: ParameterRule<FilesParameters> = ({ values }, report) => {
  const { dataset } = values
  for (const name of ['source', 'series', 'station'] as const) {
    checkName(name, values[name], report)
    const datasets: readonly string[] = DATASETS_OF[name]
    if (values[name] !== undefined && dataset !== undefined && !datasets.includes(dataset))
      report(name, `${name} is for dataset=${datasets.join(' and ')}, not ${dataset}.`)
  }
  checkDateRange(values, report)
}

const TIME_SCHEMA = { type: ['string', 'null'], format: 'date-time' } as const

const FILE_SCHEMA = objectSchema({
  path: { type: 'string', description: 'Path below the lake.' },
  url: {
    type: ['string', 'null'],
    description: 'Address in object storage; null if the lake is not a copy of a bucket.',
  },
  bytes: { type: 'integer', description: 'Size.' },
  rows: { type: ['integer', 'null'], description: 'Rows; null where the footer cannot be read.' },
  sha256: { type: 'string', description: 'SHA-256 of the bytes, in hexadecimal.' },
  min_ts: {
    ...TIME_SCHEMA,
    description: 'First time of a row, with nanoseconds; null if the file does not state it.',
  },
  max_ts: { ...TIME_SCHEMA, description: 'Last time of a row, likewise.' },
})

export interface FilesEndpointOptions {
  readonly lake: string
  /** The `s3://bucket/prefix` that has the same keys; null if there is none. */
  readonly bucket: string | null
  /** The part of the lake that this replica holds; null for all. */
  readonly choice: LakeChoice | null
}

export function filesEndpoint(options: FilesEndpointOptions): Endpoint {
  const { lake, bucket, choice } = options
  const descriptions = new FileDescriptions(lake)
  let requests = 0
  return defineEndpoint({
    path: PATH,
    summary: 'The files of the lake with size, rows, checksum and times, by path.',
    parameters: FILES_PARAMETERS,
    rule: filesRule,
    documentation: {
      tag: 'Catalogue',
      description:
        'A file is read once for its checksum, so the first pages of a large lake take seconds and may have fewer files than limit: follow the Link header.',
      schema: { type: 'array', items: FILE_SCHEMA },
      headers: { Link: PAGE_HEADERS['Link']! },
      errors: ['lake_unavailable', 'lake_file_changed', 'not_held'],
      examples: [
        { title: 'The order books of a series', values: { dataset: 'lob', series: 'KXHIGHNY' } },
        {
          title: 'The order books of a date',
          values: { dataset: 'lob', from: '2026-07-01', to: '2026-07-01' },
        },
        { title: 'A station has no order books', values: { dataset: 'lob', station: 'NYC' }, status: 400 },
      ],
      exampleRecord: {
        path: `lob/source=${lobSources()[0]}/series=KXHIGHNY/date=2026-07-01/lob.parquet`,
        url: null,
        bytes: 225818,
        rows: 14115,
        sha256: '3d762bda08d5790c1d5304669b688083de8d3f4108abb1be706c4ad76d8a97c7',
        min_ts: '2026-07-01T00:00:00.000000000Z',
        max_ts: '2026-07-01T23:59:59.762230000Z',
      },
    },
    async handle(values, { signal }) {
      const selection = selectionOf(values)
      const { dataset, scope, from } = selection
      const series = dataset === 'observations' ? null : scope === null ? [] : [scope]
      refuseNotHeld(choice, { series, fromMs: Date.parse(from ?? '0000-01-01') })
      if (requests >= REQUESTS_MAX)
        throw new ApiError('too_many_requests', `${REQUESTS_MAX} requests for files are answered at once.`)
      requests += 1
      try {
        await assertLakeIsThere(lake)
        const keys = (await lakeKeys(lake, selection)).slice(values.offset)
        const [files, looked] = await descriptions.page(keys.slice(0, values.limit), READ_BYTES_MAX, signal)
        const reply = jsonReply(files.map((file) => fileRecord(file, bucket)))
        return pageReply(PATH, values, { reply, hasMore: looked < keys.length }, looked)
      } finally {
        requests -= 1
      }
    },
  })
}

/** Fails instead of answering with an empty list, which would mean an empty lake. @throws {ApiError} `lake_unavailable` */
async function assertLakeIsThere(lake: string): Promise<void> {
  await readdir(lake).catch((error: unknown) => {
    throw new ApiError('lake_unavailable', 'The directory of the lake cannot be read.', { cause: error })
  })
}

function selectionOf(values: ParameterValues<FilesParameters>): FileSelection {
  const { dataset, source, series, station, from, to } = values
  const scope = series ?? (station === undefined ? null : stationCode(station))
  return { dataset, source: source ?? null, scope, from: from ?? null, to: to ?? null }
}

function fileRecord({ key, sizeBytes, sha256, facts }: DescribedFile, bucket: string | null): object {
  return {
    path: key,
    url: bucket === null ? null : `${bucket}/${key}`,
    bytes: sizeBytes,
    rows: facts === undefined ? null : Number(facts.rows),
    sha256,
    min_ts: textOf(facts?.minTs),
    max_ts: textOf(facts?.maxTs),
  }
}

function textOf(ns: bigint | null | undefined): string | null {
  return ns === null || ns === undefined ? null : instantText(ns)
}
