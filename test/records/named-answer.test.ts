// A thread begins an answer under the last known versions. Tests when it begins, and what happens if the versions changed.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { CachePolicy } from '../../server/http/cache-policy.ts'
import { openNamed } from '../../server/records/named-answer.ts'
import type { RecordOpenOptions, RecordPool } from '../../server/records/record-pool.ts'
import { RecordValidators } from '../../server/records/record-validators.ts'
import type { SeenFile } from '../../shared/file-identity.ts'
import type { RecordQuery } from '../../shared/record-task.ts'

const QUERY = { kind: 'climate' } as RecordQuery

type Opened = Awaited<ReturnType<RecordPool['open']>>

/** A pool that records the seeds of the streams that are opened and closed. */
class NotingPool {
  readonly seeds: (string | undefined)[] = []
  readonly closed: (string | undefined)[] = []
  seenFiles: readonly SeenFile[] | null = null
  readonly #answer: (options: RecordOpenOptions) => Promise<void>

  constructor(answer: (options: RecordOpenOptions) => Promise<void> = async () => {}) {
    this.#answer = answer
  }

  async open(_: RecordQuery, options: RecordOpenOptions): Promise<Opened> {
    const seed = options.validation?.seed
    this.seeds.push(seed)
    await this.#answer(options)
    return {
      head: { identity: seed, seenFiles: this.seenFiles },
      close: async () => void this.closed.push(seed),
    } as unknown as Opened
  }
}

function versions(climate: string): ReadonlyMap<string, string> {
  return new Map([
    ['climate', climate],
    ['series', '1'],
    ['lake_manifest', '1'],
  ])
}

function validatorsOf(
  known: ReadonlyMap<string, string>,
  now: Promise<ReadonlyMap<string, string> | undefined>,
) {
  return new RecordValidators({
    versions: () => known,
    fresh: () => now,
    cachePolicy: new CachePolicy({ isShared: true }),
    version: 'v',
  })
}

async function rejectsWhen(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort')
  throw signal.reason
}

function request(signal = new AbortController().signal) {
  return { held: [], kept: [], client: 'c', signal }
}

test('a thread begins while the store is queried, and its answer is used if nothing has changed', async () => {
  const pool = new NotingPool()
  const store = new EventEmitter<{ told: [ReadonlyMap<string, string>] }>()
  const now = once(store, 'told').then(([told]) => told as ReadonlyMap<string, string>)
  const opening = openNamed(pool, validatorsOf(versions('7'), now), QUERY, request())
  assert.deepEqual(pool.seeds, ['v 7'])
  store.emit('told', versions('7'))
  const answer = await opening
  assert.equal(answer?.stream.head.identity, 'v 7')
  assert.deepEqual([pool.seeds, pool.closed], [['v 7'], []])
})

test('an answer of lake files alone does not wait for the store', async () => {
  const pool = new NotingPool()
  pool.seenFiles = []
  const never = new Promise<never>(() => {})
  const answer = await openNamed(pool, validatorsOf(versions('7'), never), QUERY, request())
  assert.deepEqual([answer?.stream.head.identity, pool.closed], ['v 7', []])
})

test('an answer begun with older versions is closed, and another is made with the current ones', async () => {
  const pool = new NotingPool()
  const validators = validatorsOf(versions('7'), Promise.resolve(versions('8')))
  const answer = await openNamed(pool, validators, QUERY, request())
  assert.equal(answer?.stream.head.identity, 'v 8')
  assert.deepEqual(pool.closed, ['v 7'])
})

test('a failure is reported if nothing has changed, and discarded if the versions have', async () => {
  const fails = async ({ validation }: RecordOpenOptions): Promise<void> => {
    if (validation?.seed === 'v 7') throw new Error('unknown')
  }
  const same = validatorsOf(versions('7'), Promise.resolve(versions('7')))
  await assert.rejects(openNamed(new NotingPool(fails), same, QUERY, request()), /unknown/)
  const other = validatorsOf(versions('7'), Promise.resolve(versions('8')))
  const answer = await openNamed(new NotingPool(fails), other, QUERY, request())
  assert.equal(answer?.stream.head.identity, 'v 8')
})

test('an answer that was begun is cancelled if the versions have changed or the store is unavailable', async () => {
  const waits = async ({ validation, signal }: RecordOpenOptions): Promise<void> => {
    if (validation?.seed === 'v 7') await rejectsWhen(signal)
  }
  const other = validatorsOf(versions('7'), Promise.resolve(versions('8')))
  const answer = await openNamed(new NotingPool(waits), other, QUERY, request())
  assert.equal(answer?.stream.head.identity, 'v 8')
  const away = validatorsOf(versions('7'), Promise.resolve(undefined))
  assert.equal(await openNamed(new NotingPool(waits), away, QUERY, request()), undefined)
})

test('without known versions the answer waits for the store', async () => {
  const pool = new NotingPool()
  const answer = await openNamed(
    pool,
    validatorsOf(new Map(), Promise.resolve(versions('8'))),
    QUERY,
    request(),
  )
  assert.equal(answer?.stream.head.identity, 'v 8')
  assert.deepEqual(pool.seeds, ['v 8'])
})
