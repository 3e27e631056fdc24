// Opens answers whose identity includes the store's current versions. A thread starts with the last known versions while the
// store is asked for the current ones. Mostly they are equal: then nothing changed while the rows were read. If they differ, the
// answer is started again. An answer from lake files alone has no store version in its identity, and does not wait for the store.

import type { RecordHead, RecordQuery } from '../../shared/record-task.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'
import type { RecordPool } from './record-pool.ts'
import type { RecordValidators } from './record-validators.ts'

/** The client, and the identities of the answer that the client (`held`) and the server (`kept`) have. */
interface NamedRequest {
  readonly held: readonly string[]
  readonly kept: readonly string[]
  readonly client: string
  readonly signal: AbortSignal
}

/** The stream must be closed. */
interface NamedAnswer {
  readonly stream: WorkerStream<RecordHead>
  readonly versions: DataVersions
}

/** Resolves to undefined while the store is unreachable or slow. Rejects as the pool does. */
export async function openNamed(
  pool: Pick<RecordPool, 'open'>,
  validators: Pick<
    RecordValidators,
    'known' | 'fresh' | 'areSame' | 'isLakeAlone' | 'validationOf' | 'rememberedOf'
  >,
  query: RecordQuery,
  request: NamedRequest,
): Promise<NamedAnswer | undefined> {
  const openWith = async (versions: DataVersions, signal: AbortSignal): Promise<NamedAnswer | undefined> => {
    const { held, kept, client } = request
    const validation = validators.validationOf(query.kind, versions, { held, kept })
    if (validation === null) return undefined
    const options = { headOnly: false, validation, versions: validators.rememberedOf(versions) }
    return { stream: await pool.open(query, { ...options, signal, client }), versions }
  }
  const { known } = validators
  if (validators.isLakeAlone(query.kind)) return openWith(known, request.signal)
  const fresh = validators.fresh()
  const change = new AbortController()
  const early = openWith(known, AbortSignal.any([request.signal, change.signal]))
  // If the versions differ, the result of this attempt is not used.
  early.catch(() => {})
  const lakeAlone = early.then(
    (answer) => (answer !== undefined && answer.stream.head.seenFiles !== null ? answer : undefined),
    () => undefined,
  )
  const first = await Promise.race([lakeAlone, fresh.then(() => undefined)])
  if (first !== undefined) return first
  const versions = await fresh
  if (versions !== undefined && validators.areSame(query.kind, versions, known)) return early
  change.abort(new Error('the store has changed'))
  const answer = await early.catch(() => undefined)
  await answer?.stream.close()
  return versions === undefined ? undefined : openWith(versions, request.signal)
}
