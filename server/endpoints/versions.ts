// GET /api/v1/versions: the versions of a dataset, newest first, and the changes of each.

import { type LakeDataset, LAKE_DATASETS } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { objectSchema } from '../http/documentation.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import type { LakeVersions } from '../lake/lake-versions.ts'
import type { Parameter } from '../query/parameters.ts'
import { PAGE_HEADERS, PAGE_PARAMETERS, pageReply } from './page-parameters.ts'

const PATH = '/api/v1/versions'
/** The partitions that are listed for one version, at most. */
const PARTITIONS_MAX = 1_000

const PARAMETERS = [
  {
    name: 'dataset',
    description: 'Order books (lob), trades, candles or observations.',
    schema: { type: 'string', enum: LAKE_DATASETS },
    required: true,
  },
  ...PAGE_PARAMETERS,
] as const satisfies readonly Parameter[]

const VERSION_SCHEMA = objectSchema({
  id: { type: 'string', description: 'Value of the parameter version and of the header Lake-Version.' },
  created_at: { type: 'string', format: 'date-time', description: 'When this server first saw it.' },
  changed: {
    type: 'integer',
    description: 'Files added, replaced or removed since the version before.',
  },
  partitions: {
    type: 'array',
    items: { type: 'string' },
    description: `Paths of these files, at most ${PARTITIONS_MAX}. In the oldest version, all files are added ones.`,
  },
})

export function versionsEndpoint(versions: LakeVersions): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'The versions of a dataset of the lake, the newest first.',
    parameters: PARAMETERS,
    documentation: {
      tag: 'Catalogue',
      description:
        'The id of a version is a digest of the paths, sizes and checksums of the closed files, so all replicas with the same files give it the same id. Each server lists the versions that it has seen.',
      schema: { type: 'array', items: VERSION_SCHEMA },
      headers: { Link: PAGE_HEADERS['Link']! },
      errors: [],
      examples: [
        { title: 'The versions of the order books', values: { dataset: 'lob' } },
        { title: 'Climate records have no versions', values: { dataset: 'climate' }, status: 400 },
      ],
      exampleRecord: {
        id: 'lob-4W1BqSXlK0zv',
        created_at: '2026-07-04T09:00:00.000Z',
        changed: 1,
        partitions: [`lob/source=${lobSources()[0]}/series=KXHIGHNY/date=2026-07-01/lob.parquet`],
      },
    },
    handle(values) {
      const { dataset, limit, offset } = values
      const all = listed(versions, dataset)
      const reply = jsonReply(all.slice(offset, offset + limit))
      return pageReply(PATH, values, { reply, hasMore: all.length > offset + limit })
    },
  })
}

function listed(versions: LakeVersions, dataset: LakeDataset): object[] {
  const list: object[] = []
  let before: string | undefined
  for (const { id, createdMs, files, removed } of versions.changesOf(dataset)) {
    const keys = [...files.map(({ key }) => key), ...removed].toSorted()
    const partitions = keys.slice(0, PARTITIONS_MAX)
    if (id !== before)
      list.push({ id, created_at: new Date(createdMs).toISOString(), changed: keys.length, partitions })
    before = id
  }
  return list.toReversed()
}
