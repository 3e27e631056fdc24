// Answers that the versions of now name. A thread begins with the versions of a moment ago while the store is asked for
// those of now: mostly they are the same still, and then nothing changed while the rows were read either. Where they are
// not, the answer is begun anew. One that is made of lake files alone has no version in its name, and waits for none.

import type { RecordHead, RecordQuery } from '../../shared/record-task.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'
import type { RecordPool } from './record-pool.ts'
import type { RecordValidators } from './record-validators.ts'

/** Who asks, and which names of the answer are held: by the client, and here. */
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

/** Resolves to nothing while the store is away or slow. Rejects as the pool does. */
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
  // Where other versions are found nobody asks how it went.
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
