// When a recorder received a message. The words of a key's name show whether the key is a time, so that every recorder's spelling
// is recognized. A time under such a key is read or refused, never ignored.
//
//   received_at, recvTs, ts_recv, local_timestamp, recorded_at …   receive times by name
//   ts, time, t, timestamp, date, datetime, when, log_time …       times; of a wrapper they are its receive time
//   exchange_ts, event_time, connected_at, elapsed_time …          times of something else: left alone

import { BadLineError, shown } from '../feed/bad-line.ts'
import { instantOf } from '../feed/instant.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'

type KeyKind = 'receive' | 'time' | 'other'

/** A time found beside or in a message. */
export interface FoundTime {
  readonly key: string
  readonly ts: bigint
  /** The key's name says that it is a receive time. Another time beside a receive time may be the exchange's. */
  readonly isReceiveTime: boolean
}

const wordSet = (words: string): ReadonlySet<string> => new Set(words.split(' '))

const RECEIVE_WORDS = wordSet(
  'recv rcv rcvd recvd receive received receipt rx arrival arrived captured capture recorded logged ingested local',
)
/** Words that mean a time by themselves. */
const RECEIVE_ALONE = wordSet('recv received arrival arrived captured recorded logged ingested')
const TIME_WORDS = wordSet('ts time timestamp stamp at date datetime when clock t utc')
const UNIT_WORDS = wordSet(
  's sec secs second seconds ms msec milli millis milliseconds us usec micro micros microseconds ns nsec nano nanos ' +
    'nanoseconds unix epoch iso',
)
const OTHER_WORDS = wordSet(
  'exchange exch server venue event trade market match sent source origin feed upstream zone elapsed latency lag delay ' +
    'duration offset interval period rtt trip mono monotonic perf start started begin end ended open opened close ' +
    'closed expiry expiration settled settlement connect connected connection session seq count',
)

const KINDS_KEPT_MAX = 1000
const kinds = new Map<string, KeyKind>()

/** The kind of a key, by its name. */
export function kindOfKey(key: string): KeyKind {
  const known = kinds.get(key)
  if (known !== undefined) return known
  const kind = kindOfWords(wordsOf(key))
  if (kinds.size < KINDS_KEPT_MAX) kinds.set(key, kind)
  return kind
}

function wordsOf(key: string): string[] {
  return key
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
}

function kindOfWords(words: readonly string[]): KeyKind {
  if (words.some((word) => OTHER_WORDS.has(word))) return 'other'
  const hasTime = words.some((word) => TIME_WORDS.has(word))
  const units = words.filter((word) => UNIT_WORDS.has(word)).length
  if (words.some((word) => RECEIVE_WORDS.has(word))) {
    const isAlone = words.length === 1 && RECEIVE_ALONE.has(words[0]!)
    return hasTime || units > 0 || isAlone ? 'receive' : 'other'
  }
  // `epoch_ms` is a time; `epoch` alone counts connections and `ms` alone may be anything.
  return hasTime || units > 1 ? 'time' : 'other'
}

// Neither exchange traded before 2010. An older value is not a clock time but a counter, or seconds since a start.
const FIRST_NS = BigInt(Date.UTC(2010, 0, 1)) * NS_PER_MS
const ZONELESS = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?$/

/** The receive time that `value`, found under `key`, states. Throws BadLineError, naming the key. */
export function readTime(key: string, value: unknown): bigint {
  const ts = instantOf(value)
  if (ts !== undefined && ts >= FIRST_NS) return ts
  const reason =
    ts !== undefined
      ? ' (it would lie before 2010)'
      : typeof value === 'string' && ZONELESS.test(value)
        ? ' (its zone is missing: Z, or +00:00)'
        : ''
  throw new BadLineError(`${key} is no time: ${shown(value)}${reason}`)
}

/** The largest difference between two notations of one moment. */
const AGREEMENT_NS = 1_000_000_000n
/** A `ts` or `time` that is at most this long before the receive time beside it is the exchange's. */
const LAG_NS_MAX = 60_000_000_000n

/**
 * The receive time on which `times` agree; `undefined` if there is none. Of several, the latest counts, which is the most precise.
 * Throws BadLineError with the names of two keys if they contradict each other.
 */
export function agreedTime(times: readonly FoundTime[]): bigint | undefined {
  if (times.length === 1) return times[0]!.ts
  const named = times.filter(({ isReceiveTime }) => isReceiveTime)
  const best = latest(named.length > 0 ? named : times)
  if (best === undefined) return undefined
  for (const time of times) {
    const before = best.ts - time.ts
    const beforeMax = best.isReceiveTime && !time.isReceiveTime ? LAG_NS_MAX : AGREEMENT_NS
    if (before > beforeMax || before < -AGREEMENT_NS) {
      const ms = (before < 0n ? -before : before) / NS_PER_MS
      throw new BadLineError(
        `${best.key} and ${time.key} are ${Number(ms) / 1000} seconds apart: which one is the receive time? Leave the other out`,
      )
    }
  }
  return best.ts
}

function latest(times: readonly FoundTime[]): FoundTime | undefined {
  let found = times[0]
  for (const time of times) if (time.ts > found!.ts) found = time
  return found
}
