import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PART_ERRORS_MAX, PartQueue, type SubmittedPlan } from '../../server/export/part-queue.ts'
import { type PartWork, PartWorker } from '../../server/export/part-worker.ts'
import { PlaceError } from '../../server/export/place-error.ts'
import { runs } from '../support/effort.ts'
import { makeQueueStore, type QueueStore } from '../support/queue-store.ts'

/** The maximum time until a killed worker's part is taken over. */
const TAKEN_OVER_MS_MAX = 15_000
/** How long the database is unavailable; the longer time outlasts the attempts to store a result. */
const AWAY_MS = runs(2_000, 14_000)

let store: QueueStore
let queue: PartQueue
const upkeepErrors: Error[] = []

before(async () => {
  store = await makeQueueStore()
  queue = await PartQueue.open(store.url, true, (error) => upkeepErrors.push(error))
})
after(async () => {
  await queue.close()
  await store.close()
  assert.deepEqual(upkeepErrors, [])
})

const VERSION = '1.2.3'

interface IndexedPart {
  readonly index: number
}

interface NamedPlan extends SubmittedPlan {
  readonly name: string
}

function planOf(name: string, count: number): NamedPlan {
  return { version: VERSION, name, parts: Array.from({ length: count }, (_, index) => ({ index })) }
}

/** The calls of the work, in order. */
class NotedWork implements PartWork<NamedPlan, IndexedPart> {
  readonly version: string
  readonly ran: number[] = []
  finished = 0
  readonly finishedOf: object[] = []
  readonly #run: (index: number, signal: AbortSignal) => Promise<void> | void

  constructor(
    run: (index: number, signal: AbortSignal) => Promise<void> | void = () => {},
    version = VERSION,
  ) {
    this.#run = run
    this.version = version
  }

  async prepare(): Promise<void> {}

  async runPart(_plan: NamedPlan, { index }: IndexedPart, signal: AbortSignal) {
    this.ran.push(index)
    await this.#run(index, signal)
    return { rows: 10, bytes: 100 }
  }

  async finish({ parts }: NamedPlan): Promise<void> {
    for await (const part of parts) this.finishedOf.push(part)
    this.finished += 1
  }
}

async function workUntil(
  work: PartWork<NamedPlan, IndexedPart>,
  isOver: () => Promise<boolean>,
  name = 'worker',
): Promise<string[]> {
  const stop = new AbortController()
  const lines: string[] = []
  const running = new PartWorker(queue, work, name, (line) => lines.push(line)).run(2, stop.signal)
  while (!(await isOver())) await delay(50)
  stop.abort()
  await running
  return lines
}

const stateIs = (id: string, state: string) => async () => (await queue.status(id))?.state === state

test('each part runs once, then the manifest is written once', async () => {
  const id = await queue.submit(planOf('whole', 25))
  const work = new NotedWork()
  await workUntil(work, stateIs(id, 'completed'))
  assert.deepEqual(
    work.ran.toSorted((left, right) => left - right),
    [...Array(25).keys()],
  )
  assert.equal(work.finished, 1)
  assert.deepEqual(work.finishedOf, [...(planOf('whole', 25).parts as IndexedPart[])])
  const status = await queue.status(id)
  assert.equal(status?.parts.done, 25)
  assert.equal(status?.rows, 250n)
  assert.equal(status?.bytes, 2500n)
  assert.deepEqual(status?.failures, [])
  assert.deepEqual(await queue.unfinished(VERSION), [])
  assert.equal(await queue.cancel(id), false)
})

test('a part that keeps failing is abandoned and named with its error, and the export fails without a manifest', async () => {
  const id = await queue.submit(planOf('failing', 3))
  const work = new NotedWork((index) => {
    if (index === 1) throw new Error('the disk is full')
  })
  const lines = await workUntil(work, stateIs(id, 'failed'))
  assert.equal(work.ran.filter((index) => index === 1).length, PART_ERRORS_MAX)
  assert.equal(work.finished, 0)
  const status = await queue.status(id)
  assert.deepEqual(status?.failures, [{ index: 1, errors: PART_ERRORS_MAX, message: 'the disk is full' }])
  assert.equal(status?.parts.done, 2)
  assert.equal(status?.message, '1 parts failed')
  assert.equal(lines.filter((line) => line.endsWith('failed: the disk is full')).length, PART_ERRORS_MAX)
})

test('a full or read-only target uses up no attempt: the part is made when the target can be written again', async () => {
  const id = await queue.submit(planOf('full target', 1))
  const shown: object[] = []
  const work = new NotedWork(() => {
    if (work.ran.length <= PART_ERRORS_MAX || shown.length === 0)
      throw new PlaceError('its disk is full', undefined)
  })
  await workUntil(work, async () => {
    const { failures, state } = (await queue.status(id))!
    shown.push(...failures)
    return state === 'completed' || state === 'failed'
  })
  assert.deepEqual(shown[0], { index: 0, errors: 0, message: 'its disk is full' })
  assert.ok(work.ran.length > PART_ERRORS_MAX)
  assert.deepEqual((await queue.status(id))?.failures, [])
})

test('the status shows why the manifest could not be written', async () => {
  const id = await queue.submit(planOf('target full at the end', 1))
  const shown = new Set<string | null>()
  class FullAtTheEnd extends NotedWork {
    override async finish(plan: NamedPlan): Promise<void> {
      if (!shown.has('its disk is full')) throw new PlaceError('its disk is full', undefined)
      await super.finish(plan)
    }
  }
  const work = new FullAtTheEnd()
  await workUntil(work, async () => {
    const { state, message } = (await queue.status(id))!
    shown.add(message)
    return state === 'completed' || state === 'failed'
  })
  assert.deepEqual([...shown], [null, 'its disk is full'])
  assert.equal(work.finished, 1)
})

test('a worker that fails every part leaves the parts to another one', async () => {
  const id = await queue.submit(planOf('one bad machine', 24))
  const isOver = stateIs(id, 'completed')
  const bad = new NotedWork(() => {
    throw new Error('the disk is full')
  })
  const good = new NotedWork((_index, signal) => delay(700, undefined, { signal }))
  await Promise.all([workUntil(bad, isOver, 'bad'), workUntil(good, isOver, 'good')])
  assert.ok(bad.ran.length > 0)
  assert.equal((await queue.status(id))?.parts.done, 24)
})

test('the part of a killed worker is taken over; a part that is renewed is not, however long it takes', async () => {
  const slow = await queue.submit(planOf('slow', 1))
  const killed = await queue.submit(planOf('killed', 1))
  const lost = await queue.take(killed)
  assert.ok(lost !== null && (await queue.renew(lost, 'killed worker')))
  assert.deepEqual((await queue.status(killed))?.workers, ['killed worker'])
  const takenMs = Date.now()
  const ran: string[] = []
  const work = new NotedWork()
  work.runPart = async (plan, _index, signal) => {
    ran.push(plan.name)
    if (plan.name === 'slow') await delay(11_000, undefined, { signal })
    return { rows: 0, bytes: 0 }
  }
  let takenOverMs = 0
  await workUntil(work, async () => {
    if (takenOverMs === 0 && ran.includes('killed')) takenOverMs = Date.now() - takenMs
    return (await queue.unfinished(VERSION)).length === 0
  })
  assert.deepEqual(ran, ['slow', 'killed'])
  assert.ok(takenOverMs < TAKEN_OVER_MS_MAX, `taken over after ${takenOverMs} ms`)
  assert.equal((await queue.status(slow))?.state, 'completed')
})

test('a worker that stops returns its part at once', async () => {
  const id = await queue.submit(planOf('stopped', 1))
  const first = new NotedWork((_index, signal) => delay(60_000, undefined, { signal }))
  await workUntil(first, async () => first.ran.length > 0)
  const part = await queue.take(id)
  assert.equal(part?.errors, 0)
  assert.equal(await queue.cancel(id), true)
})

test('cancelling ends the running part and all waiting ones', async () => {
  const id = await queue.submit(planOf('cancelled', 10))
  let ended = 0
  const work = new NotedWork(async (_index, signal) => {
    await delay(60_000, undefined, { signal }).catch(() => undefined)
    ended += 1
    signal.throwIfAborted()
  })
  const over = async () => {
    if (work.ran.length === 2) await queue.cancel(id)
    return ended === 2
  }
  const lines = await workUntil(work, over)
  assert.equal(work.ran.length, 2)
  assert.equal((await queue.status(id))?.parts.cancelled, 10)
  assert.equal((await queue.status(id))?.state, 'cancelled')
  assert.equal(lines.filter((line) => line.includes('cancelled')).length, 2)
})

test('a worker of another version takes no part, and does not use up attempts', async () => {
  const id = await queue.submit(planOf('newer', 1))
  const older = new NotedWork(undefined, '1.2.2')
  let looks = 0
  await workUntil(older, async () => (looks += 1) === 40, 'older')
  assert.deepEqual(older.ran, [])
  const waiting = await queue.status(id)
  assert.deepEqual([waiting?.parts.waiting, waiting?.version, waiting?.failures], [1, VERSION, []])
  assert.equal((await queue.take(id))?.turn, 0)
  assert.equal(await queue.cancel(id), true)
})

test('an unknown export has no status', async () => {
  assert.equal(await queue.status('00000000-0000-4000-8000-000000000000'), null)
})

async function goAway(ms: number): Promise<void> {
  await store.proxy.refuse()
  await delay(ms)
  await store.proxy.accept()
}

test('while the database is unavailable parts continue, and their results are stored when it is back', async () => {
  const id = await queue.submit(planOf('away', 6))
  let away = Promise.resolve()
  const work = new NotedWork(async () => {
    if (work.ran.length === 2) {
      away = goAway(AWAY_MS)
    }
    await delay(100)
  })
  await workUntil(work, async () => await stateIs(id, 'completed')().catch(() => false))
  await away
  const status = await queue.status(id)
  assert.equal(status?.parts.done, 6)
  assert.deepEqual(status?.failures, [])
  assert.equal(work.finished, 1)
  // pg-boss's maintenance gets connection errors.
  upkeepErrors.length = 0
})
