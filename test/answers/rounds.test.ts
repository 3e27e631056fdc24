import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Rounds } from '../../server/answers/rounds.ts'

/** Work that the test ends. */
class Work {
  readonly begun: { finish: (result: string) => void; fail: (error: Error) => void; signal: AbortSignal }[] =
    []

  readonly make = (signal: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      this.begun.push({ finish: resolve, fail: reject, signal })
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
}

async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

const { signal: NEVER } = new AbortController()

test('callers that join during a round share the next round, which begins after it', async () => {
  const rounds = new Rounds<string>()
  const work = new Work()
  const first = rounds.join('key', NEVER, work.make)
  await settle()
  const later = [1, 2, 3].map(async () => rounds.join('key', NEVER, work.make))
  const other = rounds.join('other', NEVER, work.make)
  await settle()
  assert.equal(work.begun.length, 2, 'one of each key')
  work.begun[1]?.finish('other')
  work.begun[0]?.finish('old')
  assert.deepEqual([await first, await other], ['old', 'other'])
  await settle()
  assert.equal(work.begun.length, 3)
  work.begun[2]?.finish('new')
  assert.deepEqual(await Promise.all(later), ['new', 'new', 'new'])
  const again = rounds.join('key', NEVER, work.make)
  await settle()
  work.begun[3]?.finish('again')
  assert.equal(await again, 'again')
})

test('a failure rejects the callers of its round and does not affect the next round', async () => {
  const rounds = new Rounds<string>()
  const work = new Work()
  const both = [rounds.join('key', NEVER, work.make), rounds.join('key', NEVER, work.make)]
  await settle()
  work.begun[0]?.fail(new Error('broken'))
  await assert.rejects(both[0]!, /broken/)
  await settle()
  work.begun[1]?.finish('mended')
  assert.equal(await both[1], 'mended')
})

test('work continues while a caller waits for it or for the next round, and is then cancelled', async () => {
  const rounds = new Rounds<string>()
  const work = new Work()
  const [one, two, three] = [new AbortController(), new AbortController(), new AbortController()]
  const running = rounds.join('key', one.signal, work.make)
  await settle()
  const waiting = [two, three].map(async ({ signal }) => rounds.join('key', signal, work.make))
  one.abort(new Error('left'))
  await assert.rejects(running, /left/)
  await settle()
  assert.equal(work.begun[0]?.signal.aborted, false)
  work.begun[0]?.finish('kept')
  await settle()
  assert.equal(work.begun.length, 2)
  two.abort(new Error('left too'))
  await assert.rejects(waiting[0]!, /left too/)
  assert.equal(work.begun[1]?.signal.aborted, false)
  work.begun[1]?.finish('done')
  assert.equal(await waiting[1], 'done')
  const last = new AbortController()
  const leaving = [1, 2].map(async () => rounds.join('key', last.signal, work.make))
  await settle()
  last.abort(new Error('all left'))
  await assert.rejects(leaving[0]!, /all left/)
  await assert.rejects(leaving[1]!, /all left/)
  assert.equal(work.begun.length, 3)
  assert.equal(work.begun[2]?.signal.aborted, true)
})

test('a caller that joins after all others left a waiting round does not get a second round', async () => {
  const rounds = new Rounds<string>()
  const work = new Work()
  const first = rounds.join('key', NEVER, work.make)
  const leaving = new AbortController()
  const left = rounds.join('key', leaving.signal, work.make)
  await settle()
  leaving.abort(new Error('left'))
  await assert.rejects(left, /left/)
  const late = rounds.join('key', NEVER, work.make)
  work.begun[0]?.finish('first')
  await settle()
  assert.equal(work.begun.length, 2)
  work.begun[1]?.finish('late')
  assert.deepEqual([await first, await late], ['first', 'late'])
})
