// Which client gets a permit, is refused, waits or is displaced.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ExpectedWait } from '../../server/workers/expected-wait.ts'
import { type SlotHold, Slots, type SlotsOptions } from '../../server/workers/slots.ts'
import { ApiError } from '../../shared/errors.ts'

const OPTIONS: SlotsOptions = { max: 4, retryAfterS: 1, refusal: 'All are taken' }

async function takeAll(slots: Slots, clients: readonly string[]): Promise<SlotHold[]> {
  return Promise.all(clients.map(async (client) => slots.take({ count: 1, client })))
}

function refusedWith(code: string) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ApiError)
    assert.equal(error.code, code)
    assert.equal(error.headers['Retry-After'], '1')
    return true
  }
}

test('one client may hold all permits, and the next request is refused at once', async () => {
  const slots = new Slots(OPTIONS)
  const holds = await takeAll(slots, ['a', 'a', 'a', 'a'])
  await assert.rejects(slots.take({ count: 1, client: 'a' }), refusedWith('too_many_requests'))
  holds[0]?.release()
  holds[0]?.release()
  assert.equal(slots.takenCount, 3)
  await slots.take({ count: 1, client: 'a' })
  assert.deepEqual(
    { ...slots.figures, waitedMs: 0 },
    {
      granted: 5,
      refusedBusy: 1,
      refusedClient: 0,
      displaced: 0,
      waitedMs: 0,
    },
  )
})

test('a client at its share gets client_limit, and other clients get permits', async () => {
  const slots = new Slots({ ...OPTIONS, clientMax: 2 })
  await takeAll(slots, ['a', 'a'])
  await assert.rejects(slots.take({ count: 1, client: 'a' }), refusedWith('client_limit'))
  await takeAll(slots, ['b', 'b'])
  await assert.rejects(slots.take({ count: 1, client: 'c' }), refusedWith('too_many_requests'))
  assert.equal(slots.figures.refusedClient, 1)
})

test('a freed permit is reserved for the refused client that holds fewer', async () => {
  const slots = new Slots(OPTIONS)
  const holds = await takeAll(slots, ['a', 'a', 'a', 'a'])
  await assert.rejects(slots.take({ count: 1, client: 'b' }), refusedWith('too_many_requests'))
  holds[0]?.release()
  for (let round = 0; round < 10; round += 1)
    await assert.rejects(slots.take({ count: 1, client: 'a' }), refusedWith('too_many_requests'))
  await slots.take({ count: 1, client: 'b' })
  assert.equal(slots.takenCount, 4)
})

test('a freed permit is reserved for a refused client, not given to the client that just released it', async () => {
  const slots = new Slots(OPTIONS)
  const [first, second] = await takeAll(slots, ['a', 'b', 'c', 'd'])
  for (const client of ['e', 'f'])
    await assert.rejects(slots.take({ count: 1, client }), refusedWith('too_many_requests'))
  first?.release()
  await assert.rejects(slots.take({ count: 1, client: 'a' }), refusedWith('too_many_requests'))
  second?.release()
  await assert.rejects(slots.take({ count: 1, client: 'b' }), refusedWith('too_many_requests'))
  // A new client that never had a permit has the same claim as a refused one.
  await takeAll(slots, ['g', 'e'])
  assert.equal(slots.takenCount, 4)
})

test('slow readers, but not fast ones, are cut off for a claim that would be refused', async () => {
  const slots = new Slots(OPTIONS)
  const holds = await takeAll(slots, ['a', 'b', 'c', 'd'])
  const cut: number[] = []
  for (const [index, hold] of holds.entries()) {
    hold.attach({
      slowInMs: index >= 2 ? -1 : Infinity,
      displace: () => {
        cut.push(index)
        setImmediate(() => hold.release())
      },
    })
  }
  await slots.take({ count: 1, client: 'e' })
  assert.deepEqual(cut, [2])
  await slots.take({ count: 1, client: 'f' })
  assert.deepEqual(cut, [2, 3])
  await assert.rejects(slots.take({ count: 1, client: 'g' }), refusedWith('too_many_requests'))
  assert.equal(slots.takenCount, 4)
  assert.equal(slots.figures.displaced, 2)
})

test('no reader is cut off if that would not free enough permits', async () => {
  const slots = new Slots(OPTIONS)
  const holds = await takeAll(slots, ['a', 'b', 'c', 'd'])
  let isCut = false
  holds[0]?.attach({ slowInMs: -1, displace: () => (isCut = true) })
  await assert.rejects(slots.take({ count: 2, client: 'e' }), refusedWith('too_many_requests'))
  assert.equal(isCut, false)
})

test('claims of clients that hold the same are served in the order of arrival', async () => {
  const slots = new Slots({ ...OPTIONS, max: 1, queue: { waitMs: 60_000, max: 3 } })
  const first = await slots.take({ count: 1, client: 'x' })
  const order: string[] = []
  const wait = async (client: string, name: string): Promise<void> => {
    const hold = await slots.take({ count: 1, client })
    order.push(name)
    setImmediate(() => hold.release())
  }
  const waiting = [wait('x', 'x1'), wait('x', 'x2'), wait('y', 'y1')]
  await assert.rejects(slots.take({ count: 1, client: 'x' }), refusedWith('too_many_requests'))
  assert.equal(slots.waitingCount, 3)
  first.release()
  await Promise.all(waiting)
  assert.deepEqual(order, ['x1', 'x2', 'y1'])
  assert.equal(slots.waitingCount, 0)
})

test('a full queue refuses its last claim, not a newcomer that holds fewer', async () => {
  const slots = new Slots({ ...OPTIONS, max: 2, queue: { waitMs: 60_000, max: 3 } })
  const [first] = await takeAll(slots, ['x', 'x'])
  const waiting = ['x', 'x', 'x'].map(async () => slots.take({ count: 1, client: 'x' }))
  const refused = assert.rejects(waiting[2]!, refusedWith('too_many_requests'))
  const newcomer = slots.take({ count: 1, client: 'y' })
  await refused
  assert.equal(slots.waitingCount, 3)
  first?.release()
  const hold = await newcomer
  hold.release()
  const second = await waiting[0]!
  second.release()
  await waiting[1]
  assert.equal(slots.waitingCount, 0)
})

test('the waiting client that holds the fewest permits goes first', async () => {
  const slots = new Slots({ ...OPTIONS, max: 2, queue: { waitMs: 60_000, max: 3 } })
  const [, second] = await takeAll(slots, ['x', 'x'])
  const order: string[] = []
  const waiting = ['x', 'y'].map(async (client) => {
    const hold = await slots.take({ count: 1, client })
    order.push(client)
    hold.release()
  })
  second?.release()
  await Promise.all(waiting)
  assert.deepEqual(order, ['y', 'x'])
})

test('a client that holds all slots does not get those that its displaced slow streams free', async () => {
  const slots = new Slots(OPTIONS)
  const held: SlotHold[] = []
  const takeSlowly = async (): Promise<void> => {
    const hold = await slots.take({ count: 1, client: 'a' })
    held.push(hold)
    // The stream ends some time after it is cut off.
    hold.attach({ slowInMs: -1, displace: () => setTimeout(() => hold.release(), 5) })
  }
  for (let index = 0; index < 4; index += 1) await takeSlowly()
  const greedy = Array.from({ length: 36 }, () => takeSlowly().catch(() => {}))
  await Promise.all(['b', 'c'].map((client) => slots.take({ count: 1, client })))
  assert.ok(slots.figures.displaced <= 4)
  await Promise.allSettled(greedy)
})

test('a refused client that retries every second keeps its claim, even if its Retry-After is longer', async () => {
  const slots = new Slots(OPTIONS)
  const holds = await takeAll(slots, ['a', 'a', 'a', 'a'])
  for (const hold of holds) hold.follow(() => 0.000_001)
  await new Promise((resolve) => setTimeout(resolve, 20))
  await assert.rejects(slots.take({ count: 1, client: 'b' }), ({ headers }: ApiError) => {
    assert.deepEqual(headers, { 'Retry-After': '60' })
    return true
  })
  // The slow stream of a is not cut off for a claim of a, because b's claim would go first.
  holds[0]?.attach({ slowInMs: -1, displace: () => holds[0]?.release() })
  await assert.rejects(slots.take({ count: 1, client: 'a' }), ApiError)
  assert.equal(slots.figures.displaced, 0)
  await slots.take({ count: 1, client: 'b' })
  assert.equal(slots.figures.displaced, 1)
})

test('Retry-After of a client that holds fewer is the time until a stream of another client counts as slow', async () => {
  const slots = new Slots(OPTIONS)
  const holds = await takeAll(slots, ['a', 'a', 'b', 'b'])
  for (const hold of holds) hold.follow(() => 0.000_001)
  await new Promise((resolve) => setTimeout(resolve, 20))
  holds[0]?.attach({ slowInMs: 3_000, displace: () => {} })
  const retryAfter = async (client: string): Promise<unknown> =>
    slots.take({ count: 1, client }).then(
      () => 'granted',
      ({ headers }: ApiError) => headers['Retry-After'],
    )
  assert.equal(await retryAfter('c'), '4')
  assert.equal(await retryAfter('b'), '60', 'b holds no less than a')
})

test('no client gets a permit while a client that holds fewer waits', async () => {
  const step = fc.oneof(
    fc.record({ client: fc.constantFrom('a', 'b', 'c'), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ release: fc.nat(5) }),
  )
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const slots = new Slots({ ...OPTIONS, queue: { waitMs: 60_000, max: 100 } })
    const held: { readonly client: string; readonly count: number; readonly hold: SlotHold }[] = []
    const waiting = new Set<{ readonly client: string; readonly count: number }>()
    const heldBy = (client: string): number =>
      held.filter((each) => each.client === client).reduce((sum, { count }) => sum + count, 0)
    const leaving = new AbortController()
    for (const each of steps) {
      if ('release' in each) held.splice(each.release, 1)[0]?.hold.release()
      else {
        const claim = { ...each }
        waiting.add(claim)
        const granted = (hold: SlotHold): void => {
          waiting.delete(claim)
          const heldCount = heldBy(claim.client)
          for (const { client } of waiting)
            assert.ok(heldBy(client) >= heldCount, `${claim.client} before ${client}`)
          held.push({ ...claim, hold })
        }
        void slots.take({ ...claim, signal: leaving.signal }).then(granted, () => waiting.delete(claim))
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    leaving.abort()
    for (const { hold } of held) hold.release()
    assert.equal(slots.takenCount, 0)
  })
  await fc.assert(property, { numRuns: 300 })
})

test('a wait ends at its deadline, or when its client disconnects', async () => {
  const slots = new Slots({ ...OPTIONS, max: 1, queue: { waitMs: 20, max: 3 } })
  const hold = await slots.take({ count: 1, client: 'a' })
  const leaving = new AbortController()
  const gone = slots.take({ count: 1, client: 'b', signal: leaving.signal })
  const late = slots.take({ count: 1, client: 'c' })
  leaving.abort()
  await assert.rejects(gone, /client is gone/)
  await assert.rejects(late, refusedWith('too_many_requests'))
  hold.release()
  assert.equal(slots.takenCount, 0)
  assert.equal(slots.waitingCount, 0)
})

test('Retry-After is the time until enough permits are expected to be free', async () => {
  const slots = new Slots(OPTIONS)
  const retryAfterOf = async (count: number, client: string): Promise<string | undefined> => {
    try {
      await slots.take({ count, client })
    } catch (error) {
      assert.ok(error instanceof ApiError)
      return error.headers['Retry-After']
    }
    return assert.fail('it was not refused')
  }
  const holds = await takeAll(slots, ['a', 'b', 'c', 'd'])
  await new Promise((resolve) => setTimeout(resolve, 20))
  // Without progress there is no estimate. With progress, at least 20 ms have passed.
  assert.equal(await retryAfterOf(1, 'e'), '1')
  for (const hold of holds) hold.follow(() => 0.000_001)
  assert.equal(await retryAfterOf(1, 'f'), '60')
  holds[2]?.follow(() => 1)
  assert.equal(await retryAfterOf(1, 'g'), '1', 'one is enough, and one is nearly done')
  assert.equal(await retryAfterOf(2, 'h'), '60')
  for (const hold of holds) hold.release()
  assert.equal(slots.takenCount, 0)
})

test('the expected wait comes from earlier holds, or from the age of a hold that lasts longer', () => {
  const wait = new ExpectedWait()
  const hold = (heldMs: number, progress: number | null = null) => ({ count: 1, heldMs, progress })
  assert.equal(wait.retryAfterS([], 1, 1), 1)
  assert.equal(wait.retryAfterS([hold(8_000)], 1, 1), 4)
  wait.learn(20_000)
  assert.equal(wait.retryAfterS([hold(5_000)], 1, 1), 15)
  assert.equal(wait.retryAfterS([hold(5_000), hold(18_000)], 1, 1), 9)
  assert.equal(wait.retryAfterS([hold(5_000), hold(18_000)], 2, 1), 15)
  assert.equal(wait.retryAfterS([hold(10_000, 0.8)], 1, 1), 3)
  assert.equal(wait.retryAfterS([hold(10_000, 0)], 1, 1), 10, 'no progress says nothing')
  assert.equal(wait.retryAfterS([hold(1e9)], 1, 1), 60)
})
