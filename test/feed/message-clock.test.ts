// Which time a message gets, and which clock is set aside: a recorder's may be off by hours for good, an hour from some
// moment on, or once; the exchange's may be wrong once. A message without any time is never known too early.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageClock } from '../../server/feed/message-clock.ts'
import { timesInOrder } from '../../server/feed/times-in-order.ts'
import { decoderHarness } from '../support/import-harness.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const IN_2099 = Date.UTC(2099, 0, 1)

/** A message: the exchange's time and the recorder's, in ms after the beginning; a `*` begins a connection. */
interface Told {
  readonly ts?: number
  readonly recv?: number
  readonly isNew?: boolean
  readonly isIdle?: boolean
}

/** Where each message is put, in ms after the beginning, and what was set aside. */
function placed(
  messages: readonly Told[],
  { isLive = false } = {},
): { readonly times: number[]; readonly aside: string[] } {
  const times: number[] = []
  const aside: string[] = []
  const clock = new MessageClock<number>({
    deliver: (item, ts) => (times[item] = Number(ts / 1_000_000n) - MS),
    onSetAside: (item, which) => aside.push(`${item} ${which}`),
    trustsReceiveTimes: isLive,
    isNext: () => false,
    isOutOfPlace: () => false,
    isIdle: (item) => messages[item]!.isIdle ?? false,
    saysNothingNew: () => false,
    onLeftOut: (item) => aside.push(`${item} left out`),
    anotherRecording: { backNs: 600_000_000_000n, onBegin: () => undefined },
  })
  const ns = (ms: number | undefined): bigint | undefined =>
    ms === undefined ? undefined : BigInt(MS + ms) * 1_000_000n
  for (const [item, { ts, recv, isNew = false }] of messages.entries())
    clock.push(item, ns(ts), ns(recv), isNew)
  clock.finish()
  return { times, aside }
}

/** A connection of two books and three changes, ten minutes apart, with a recorder's clock that is off by `offset`. */
function connection(offset: (at: number) => number): Told[] {
  const book = (at: number): Told => ({ recv: at + 20 + offset(at) })
  const change = (at: number): Told => ({ ts: at, recv: at + 20 + offset(at) })
  return [book(0), book(1), change(10 * MINUTE), change(20 * MINUTE), book(25 * MINUTE), change(30 * MINUTE)]
}

const RIGHT = [20, 21, 10 * MINUTE, 20 * MINUTE, 25 * MINUTE + 20, 30 * MINUTE]

test('local time written as UTC is put right by the exchange’s times, in both directions', () => {
  for (const hours of [-8, -5, -4, -0.5, 1, 2, 5.5, 14]) {
    const { times, aside } = placed(connection(() => hours * HOUR))
    assert.deepEqual(times, RIGHT, `${hours} hours`)
    assert.deepEqual(new Set(aside.map((text) => text.slice(2))), new Set(['recvTs']))
  }
  assert.deepEqual(placed(connection(() => 0)), { times: RIGHT, aside: [] })
})

test('a clock that is off by any time is known by several messages', () => {
  const off = 37 * MINUTE + 12_345
  const more: Told[] = [40, 50].map((at) => ({ ts: at * MINUTE, recv: at * MINUTE + 20 + off }))
  const { times } = placed([...connection(() => off), ...more])
  // As far as the first change was under way, the books come earlier.
  assert.deepEqual(times, [0, 1, ...RIGHT.slice(2, 4), 25 * MINUTE, 30 * MINUTE, 40 * MINUTE, 50 * MINUTE])
})

test('a clock put forward or back an hour in the middle moves nothing', () => {
  for (const jump of [HOUR, -HOUR]) {
    for (const from of [15 * MINUTE, 22 * MINUTE]) {
      const more: Told[] = [40, 50].map((at) => ({ ts: at * MINUTE, recv: at * MINUTE + 20 + jump }))
      const { times } = placed([...connection((at) => (at > from ? jump : 0)), ...more])
      assert.deepEqual(times, [...RIGHT, 40 * MINUTE, 50 * MINUTE], `${jump} from ${from}`)
    }
  }
})

test('a clock put forward between a connection’s first book and its first change leaves the book where it was', () => {
  const { times } = placed([
    { recv: 20 },
    { ts: 100 * MINUTE, recv: 100 * MINUTE + HOUR + 20 },
    { ts: 101 * MINUTE, recv: 101 * MINUTE + HOUR + 20 },
  ])
  assert.deepEqual(times, [20, 100 * MINUTE, 101 * MINUTE])
})

test('one wrong time is set aside, whichever clock it is of and wherever it stands', () => {
  for (const wrong of [IN_2099 - MS, 5 * HOUR, 24 * HOUR]) {
    for (const place of RIGHT.keys()) {
      const messages = connection(() => 0)
      messages[place] = { ...messages[place]!, recv: wrong }
      const { times, aside } = placed(messages)
      assert.deepEqual(aside, [`${place} recvTs`])
      for (const [index, time] of times.entries()) {
        if (index !== place) assert.equal(time, RIGHT[index], `${wrong} at ${place}`)
      }
      // Never before it was known, and not after the next message's receipt.
      assert.ok(times[place]! >= RIGHT[place]! && times[place]! <= (RIGHT[place + 1] ?? Infinity) + 20)
    }
    for (const place of [2, 3, 5]) {
      const messages = connection(() => 0)
      messages[place] = { ...messages[place]!, ts: wrong }
      const { times, aside } = placed(messages)
      assert.deepEqual(aside, [`${place} ts`])
      assert.deepEqual(times, RIGHT.with(place, RIGHT[place]! + 20))
    }
  }
})

test('one time of the exchange that is ahead of its receipt by less than two minutes moves nothing', () => {
  for (const offset of [0, -50_000]) {
    const messages = Array.from({ length: 12 }, (_, at): Told => {
      return { ts: at * 1_000, recv: at * 1_000 + 20 + offset }
    })
    for (const ahead of [26_000, 69_000]) {
      // The first of a connection may be what shows that the clock is behind.
      for (const place of offset === 0 ? [0, 4, 9] : [4, 9]) {
        const { times, aside } = placed(
          messages.with(place, { ...messages[place]!, ts: place * 1_000 + ahead }),
        )
        assert.deepEqual(aside, [`${place} ts`], `${ahead} at ${place} of ${offset}`)
        // Where it was received, by what the clock is worth: 20 ms are not known where it is behind.
        const right = place * 1_000 + (offset === 0 ? 20 : 0)
        assert.deepEqual(times, messages.map(({ ts }) => ts!).with(place, right))
      }
    }
  }
})

test('one receive time that goes back against those around it leaves the exchange’s time where it is', () => {
  const messages = Array.from({ length: 12 }, (_, at): Told => ({ ts: at * 1_000, recv: at * 1_000 + 20 }))
  for (const behind of [7_000, 20_000, 110_000]) {
    const { times, aside } = placed(messages.with(8, { ts: 8_000, recv: 8_020 - behind }))
    assert.deepEqual(aside, ['8 recvTs'], `${behind}`)
    assert.deepEqual(
      times,
      messages.map(({ ts }) => ts!),
      `${behind}`,
    )
  }
})

test('a message that is ahead is decided in a bounded wait, whatever follows it', () => {
  const books = Array.from({ length: 12_000 }, (_, at): Told => ({ recv: at + 100 }))
  const { times } = placed([{ ts: 50, recv: 70 }, { ts: 60_000, recv: 80 }, ...books])
  assert.deepEqual(times.slice(0, 2), [50, 60_000])
  assert.equal(times.length, 12_002)
})

test('a live recorder, whose clock goes evenly, believes that it is behind when a second message says so', () => {
  const messages = Array.from({ length: 12 }, (_, at): Told => ({ ts: at * 1_000, recv: at * 1_000 + 20 }))
  const alone = messages.with(5, { ts: 80_000, recv: 5_020 })
  assert.deepEqual(placed(alone, { isLive: true }), {
    times: messages.map(({ ts }) => ts!).with(5, 5_020),
    aside: ['5 ts'],
  })
  const behind = messages.map(({ ts, recv }, at): Told => {
    return { ...(ts === undefined ? {} : { ts }), recv: recv! - (at < 5 ? 0 : 50_000) }
  })
  assert.deepEqual(placed(behind, { isLive: true }).aside, ['5 ts'])
})

test('a clock that is behind from the first message on, or from some moment on, sets no time of the exchange aside', () => {
  for (const from of [0, 1, 5, 11]) {
    const messages = Array.from({ length: 12 }, (_, at): Told => {
      return { ts: at * 1_000, recv: at * 1_000 + 20 - (at < from ? 0 : 50_000) }
    })
    assert.deepEqual(placed(messages), { times: messages.map(({ ts }) => ts!), aside: [] })
  }
})

test('a word with a wrong time proves nothing after the message before it', () => {
  const messages = [
    ...connection(() => 0),
    { recv: 31 * MINUTE, isIdle: true },
    { recv: -HOUR, isIdle: true },
    { recv: 90 * MINUTE },
    { ts: 91 * MINUTE, recv: 91 * MINUTE + 20 },
  ]
  assert.deepEqual(placed(messages).times.slice(6), [31 * MINUTE, 31 * MINUTE, 90 * MINUTE, 91 * MINUTE])
})

test('the first book of a later connection cannot have come before the end of the one before', () => {
  const later = connection(() => 0).map(({ ts, recv }): Told => {
    return { ...(ts === undefined ? {} : { ts: ts + 5 * HOUR }), recv: recv! + 5 * HOUR }
  })
  const [first, ...rest] = later
  const both = placed([...connection(() => 0), { recv: first!.recv! - 24 * HOUR, isNew: true }, ...rest])
  assert.deepEqual(both.times, [...RIGHT, 5 * HOUR + 21, ...RIGHT.slice(1).map((time) => time + 5 * HOUR)])
  // Two recordings one after the other in one file: the second began before the first, and all of it says so.
  const { times, aside } = placed([
    { ...later[0]!, isNew: true },
    ...later.slice(1),
    ...asNew(connection(() => 0)),
  ])
  assert.deepEqual(times.slice(6), RIGHT)
  assert.deepEqual(aside, [])
})

function asNew([first, ...rest]: readonly Told[]): Told[] {
  return [{ ...first!, isNew: true }, ...rest]
}

test('books alone keep their receive times, in a bounded wait', () => {
  const books = Array.from({ length: 5_000 }, (_, index): Told => ({ recv: index * 1000 }))
  assert.deepEqual(
    placed(books).times,
    books.map(({ recv }) => recv),
  )
})

test('of receive times the longest ascending choice is kept, the later one of two', () => {
  const kept = (...times: number[]): (number | undefined)[] =>
    timesInOrder(times.map(BigInt), undefined, undefined, 0n).map((time) =>
      time === undefined ? undefined : Number(time),
    )
  assert.deepEqual(kept(1, 9, 2, 3), [1, undefined, 2, 3])
  assert.deepEqual(kept(5, 1, 6, 7), [5, undefined, 6, 7])
  assert.deepEqual(kept(5, 1), [5, undefined])
  assert.deepEqual(kept(3, 3, 3), [3, 3, 3])
  assert.deepEqual(timesInOrder([5n, undefined, 1n, 8n], 2n, 7n, 0n), [5n, undefined, undefined, undefined])
})

test('a recorder’s clock that is ahead by seconds or minutes sets no time of the exchange aside', async () => {
  for (const aheadMs of [6_000, 90_000]) {
    const received = (at: number, frame: object): string => `${MS + at + aheadMs} ${JSON.stringify(frame)}`
    const changes = Array.from({ length: 40 }, (_, index) => {
      const at = (index + 1) * 5_000
      return received(at + 20, delta(index + 2, { ts_ms: MS + at }))
    })
    const harness = decoderHarness('kalshi').feed(received(0, snapshot(1)), ...changes)
    const lines = await harness.done()
    // Nothing is known before the snapshot was received, as the recorder has it; from then on it stands where it was.
    const expected = changes.map((_, index) => Math.max((index + 1) * 5_000, aheadMs))
    assert.deepEqual(
      lines.slice(-40).map((line) => Number(line.split(' ', 1)[0]) - MS),
      expected,
    )
    assert.deepEqual(harness.tally.setAside, { ts: 0, recvTs: 0 })
  }
})

test('a connection without any time at the end of a file is left out, and said', async () => {
  const harness = decoderHarness('kalshi').feed(
    snapshot(1, { ts_ms: MS }),
    delta(2),
    snapshot(1, { yes: [[1, 1]] }),
  )
  assert.deepEqual(await harness.done(), [`${MS} ${T} clear`, `${MS + 2} ${T} add bid 4500 5`])
  assert.deepEqual([...harness.tally.skippedTypes], [['none in its connection has a time', 1]])
})

test('without receive times a book after a loss, or of another market, waits for the next message', async () => {
  const later = { ts_ms: MS + HOUR }
  const afterLoss = decoderHarness('kalshi').feed(
    snapshot(1, { ts_ms: MS }),
    delta(2),
    snapshot(7, { yes: [[1, 1]] }),
    delta(8, later),
  )
  assert.deepEqual((await afterLoss.done()).slice(2), [
    `${MS + 2}.000001 ${T} gap`,
    `${MS + HOUR} ${T} clear`,
    `${MS + HOUR} ${T} set bid 100 1`,
    `${MS + HOUR} ${T} add bid 4500 5`,
  ])
  const added = decoderHarness('kalshi').feed(
    snapshot(1, { ts_ms: MS }),
    delta(2),
    snapshot(3, { market_ticker: B }),
    delta(4, later),
  )
  assert.deepEqual((await added.done()).slice(2), [
    `${MS + HOUR} ${B} clear`,
    `${MS + HOUR} ${T} add bid 4500 5`,
  ])
})
