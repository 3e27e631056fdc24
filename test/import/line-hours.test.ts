// The hour under which a line is filed, from times alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { LineHours } from '../../server/import/line-hours.ts'
import type { LineTimes } from '../../server/import/line-hours.ts'
import { MS_PER_DAY, MS_PER_HOUR } from '../../shared/utc-date.ts'

const DAY = Date.parse('2026-07-01T00:00:00Z')

type Times = Omit<LineTimes, 'bookMs'> & Partial<LineTimes>

/** A time of the day, as `10:59:58`. */
const at = (text: string): number => DAY + Date.parse(`1970-01-01T${text}Z`)
const timed = (text: string, recvMs = NaN): Times => ({ ms: at(text), recvMs })
const received = (text: string): Times => ({ ms: NaN, recvMs: at(text) })
const both = (text: string, lagMs = 40): Times => ({ ms: at(text), recvMs: at(text) + lagMs })
const UNTIMED: Times = { ms: NaN, recvMs: NaN }
/** A book without a receive time, which states when it changed last. */
const changed = (text: string): Times => ({ ...UNTIMED, bookMs: at(text) })

/** The indexes of the lines of each piece, and the hour of the end of the last piece. */
function pieces(lines: readonly Times[]): {
  readonly cuts: number[]
  readonly hours: (number | undefined)[]
} {
  const hours = new LineHours()
  const cuts: number[] = []
  const found: (number | undefined)[] = []
  let waiting: number[] = []
  const before = (): number | undefined =>
    hours.hourMs === undefined ? undefined : (hours.hourMs - DAY) / MS_PER_HOUR
  const settle = (hourBefore: number | undefined, begins: boolean): void => {
    if (begins) {
      found.push(hourBefore)
      cuts.push(waiting[0]!)
    }
    waiting = []
  }
  for (const [index, line] of lines.map((times) => ({ bookMs: NaN, ...times })).entries()) {
    if (waiting.length > 0) {
      const hourBefore = before()
      const begins = hours.resolve(line)
      if (begins === undefined) {
        waiting.push(index)
        continue
      }
      settle(hourBefore, begins)
    }
    if (hours.judge(line) === 'wait') waiting.push(index)
  }
  if (waiting.length > 0) {
    const hourBefore = before()
    settle(hourBefore, hours.resolveLast())
  }
  return { cuts, hours: [...found, before()] }
}

test('a line starts an hour if its time does and the next line confirms it', () => {
  const lines = ['10:58:00', '10:59:59.999', '11:00:00', '11:30:00', '12:00:01', '12:00:02'].map((text) =>
    timed(text),
  )
  assert.deepEqual(pieces(lines), { cuts: [2, 4], hours: [10, 11, 12] })
})

test('a book without a receive time is filed under the hour of its last change if no earlier line is later', () => {
  const lines = [timed('10:59:00'), changed('10:30:00'), changed('11:00:06'), changed('11:00:20')]
  assert.deepEqual(pieces(lines), { cuts: [2], hours: [10, 11] })
  const wrong = [timed('10:59:00'), changed('20:00:00'), changed('20:00:00'), timed('10:59:03')]
  assert.deepEqual(pieces(wrong), { cuts: [], hours: [10] })
  // Books of quiet markets do not show the hour, in any order.
  assert.deepEqual(pieces([changed('08:00:00'), timed('10:00:00'), changed('09:00:00'), timed('10:00:02')]), {
    cuts: [],
    hours: [10],
  })
})

test('a single time that jumps ahead moves no line', () => {
  const lines = ['10:00:00', '10:00:01', '13:00:00', '10:00:02', '10:59:00', '11:00:01', '11:00:02']
  assert.deepEqual(pieces(lines.map((text) => timed(text))), { cuts: [5], hours: [10, 11] })
})

test('a time that jumps ahead right before the next hour does not start it', () => {
  const lines = ['10:59:58', '10:59:59', '15:00:00', '11:00:01', '11:00:02'].map((text) => timed(text))
  assert.deepEqual(pieces(lines), { cuts: [3], hours: [10, 11] })
})

test('a line of an earlier hour stays in the open hour unless the next line confirms it', () => {
  const lines = ['10:59:59', '11:00:00', '10:59:59.900', '11:00:01', '10:20:00', '11:40:00']
  assert.deepEqual(pieces(lines.map((text) => timed(text))), { cuts: [1], hours: [10, 11] })
  const back = ['10:59:59', '11:00:00', '11:00:01', '10:20:00', '10:20:01', '11:40:00', '11:40:01']
  assert.deepEqual(pieces(back.map((text) => timed(text))), { cuts: [1, 3, 5], hours: [10, 11, 10, 11] })
})

test('hours without lines are left out', () => {
  assert.deepEqual(pieces(['10:00:00', '10:00:01', '17:00:00', '17:00:01'].map((text) => timed(text))), {
    cuts: [2],
    hours: [10, 17],
  })
})

test('lines without a time stay in the open hour, also while a line waits', () => {
  const lines = [UNTIMED, timed('10:59:00'), UNTIMED, timed('11:00:00'), UNTIMED, UNTIMED, timed('11:00:01')]
  assert.deepEqual(pieces(lines), { cuts: [3], hours: [10, 11] })
  assert.deepEqual(pieces([UNTIMED, UNTIMED]), { cuts: [], hours: [undefined] })
})

test('a first time that the second one contradicts is ignored', () => {
  const first = (ms: number): Times => ({ ms, recvMs: NaN })
  for (const ms of [DAY + 40 * MS_PER_DAY, 0, DAY - 60 * MS_PER_DAY]) {
    const lines = [first(ms), timed('10:00:00'), timed('10:00:01'), timed('11:00:00'), timed('11:00:01')]
    assert.deepEqual(pieces(lines), { cuts: [3], hours: [10, 11] })
  }
})

test('without an exchange time the receive time counts, minus the delay of earlier lines', () => {
  // The recorder writes local time, four hours behind.
  const behind = -4 * MS_PER_HOUR
  const lines = [
    both('10:59:00', behind),
    both('10:59:30', behind),
    { ms: NaN, recvMs: at('06:59:59') },
    { ms: NaN, recvMs: at('07:00:01') },
    { ms: NaN, recvMs: at('07:00:02') },
    both('11:00:03', behind),
  ]
  assert.deepEqual(pieces(lines), { cuts: [3], hours: [10, 11] })
})

test('a single wrong time does not change the assumed delay', () => {
  const lines = [
    both('10:40:00'),
    both('10:40:01'),
    { ms: at('10:59:59'), recvMs: at('10:40:02') },
    received('10:40:30'),
    received('10:40:40'),
    both('10:41:00'),
  ]
  assert.deepEqual(pieces(lines), { cuts: [], hours: [10] })
})

test('a wrong first exchange time moves no line, whatever heartbeats follow', () => {
  for (const wrong of ['09:40:02', '11:40:02']) {
    const lines = [
      received('10:39:50'),
      { ms: at(wrong), recvMs: at('10:40:02') },
      received('10:40:10'),
      received('10:40:20'),
      both('10:41:00'),
      both('11:00:00'),
      both('11:00:01'),
    ]
    assert.deepEqual(pieces(lines), { cuts: [5], hours: [10, 11] })
  }
})

test('a single exchange time counts if a clock can be off by that much', () => {
  const lines = (ms: number): Times[] => [
    received('10:59:00'),
    { ms, recvMs: at('10:59:05') },
    received('10:59:20'),
  ]
  assert.deepEqual(pieces(lines(at('06:59:05'))), { cuts: [], hours: [6] })
  assert.deepEqual(pieces(lines(at('10:59:05') + MS_PER_DAY)), { cuts: [], hours: [10] })
  // Two consistent ones count in any case.
  const behind = -3 * MS_PER_DAY
  const agreed = [
    { ms: NaN, recvMs: at('10:00:00') + behind },
    both('10:00:01', behind),
    both('10:00:02', behind),
  ]
  assert.deepEqual(pieces(agreed), { cuts: [], hours: [10] })
})

test('one wrong exchange time does not start an hour if the next line is earlier', () => {
  const lines = ['07:10:00', '07:10:01', '07:10:02'].map((text) => both(text))
  const wrong = { ms: at('08:11:04'), recvMs: at('09:11:04') }
  assert.deepEqual(pieces([...lines, wrong, both('09:57:29'), both('09:57:30')]), {
    cuts: [4],
    hours: [7, 9],
  })
})

test('heartbeats after a single exchange time are filed by the clock offset that it shows', () => {
  const ahead = 37_000
  const beats = ['10:59:20', '11:00:20', '11:00:50'].map(received)
  assert.deepEqual(pieces([both('10:58:00', ahead), ...beats, received('11:01:00')]), {
    cuts: [3],
    hours: [10, 11],
  })
})

test('without exchange times the receive times determine the hours', () => {
  const lines = ['10:59:00', '10:59:30', '11:00:10', '11:00:20', '12:10:00', '12:10:10'].map(received)
  assert.deepEqual(pieces(lines), { cuts: [2, 4], hours: [10, 11, 12] })
})

test('the first exchange time corrects the hour from receive times', () => {
  // Books come first, received by a clock that is three hours ahead.
  const ahead = 3 * MS_PER_HOUR
  const lines = [received('13:00:00'), received('13:00:01'), both('10:00:02', ahead), both('10:00:03', ahead)]
  assert.deepEqual(pieces(lines), { cuts: [], hours: [10] })
  assert.deepEqual(pieces([...lines, both('11:00:00', ahead), both('11:00:01', ahead)]), {
    cuts: [4],
    hours: [10, 11],
  })
})

test('a first receive time that the first exchange time contradicts is ignored', () => {
  for (const recvMs of [DAY + 1000 * MS_PER_DAY, at('11:00:00'), DAY - 60 * MS_PER_DAY]) {
    const lines = [
      { ms: NaN, recvMs },
      both('10:00:00'),
      both('10:00:01'),
      both('11:00:00'),
      both('11:00:01'),
    ]
    assert.deepEqual(pieces(lines), { cuts: [3], hours: [10, 11] })
  }
})

test('a quiet night with only heartbeats is filed under its hours', () => {
  const lines = [
    both('21:59:00'),
    both('21:59:30'),
    ...['22:10:00', '22:59:00', '23:01:00', '23:30:00'].map(received),
  ]
  assert.deepEqual(pieces(lines), { cuts: [2, 4], hours: [21, 22, 23] })
})

test('the time of the last line counts if its receive time confirms it or nothing contradicts it', () => {
  assert.deepEqual(pieces([timed('10:00:00'), timed('10:01:00'), timed('12:00:00')]), {
    cuts: [2],
    hours: [10, 12],
  })
  assert.deepEqual(pieces([both('10:00:00'), both('10:01:00'), both('12:00:00')]), {
    cuts: [2],
    hours: [10, 12],
  })
  assert.deepEqual(pieces([both('10:00:00'), both('10:01:00'), timed('12:00:00', at('10:01:01'))]), {
    cuts: [],
    hours: [10],
  })
  assert.deepEqual(
    pieces([timed('10:00:00'), timed('10:01:00'), { ms: DAY + 3 * MS_PER_DAY, recvMs: NaN }]),
    {
      cuts: [],
      hours: [10],
    },
  )
  assert.deepEqual(pieces([timed('10:00:00')]), { cuts: [], hours: [10] })
})

test('lines in order of time are filed under the hour of their time', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 2 * MS_PER_HOUR }), { minLength: 2, maxLength: 60 }),
      fc.constantFrom<number | 'all at once'>(NaN, 0, 37_000, -37_000, 3 * MS_PER_HOUR, 'all at once'),
      (steps, lagMs) => {
        let ms = DAY
        const times = steps.map((step) => (ms += step))
        const writtenMs = ms + MS_PER_HOUR
        // Only the receive time of the last line would contradict it.
        if (lagMs === 'all at once') times.push(ms)
        const receivedAt = (time: number): number => (lagMs === 'all at once' ? writtenMs : time + lagMs)
        const { cuts, hours } = pieces(times.map((time) => ({ ms: time, recvMs: receivedAt(time) })))
        const expected = times.map((time) => Math.floor((time - DAY) / MS_PER_HOUR))
        const filed = times.map((_, index) => hours[cuts.filter((cut) => cut <= index).length])
        assert.deepEqual(filed, expected)
      },
    ),
  )
})
