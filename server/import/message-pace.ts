// How a connection's messages come: how long they are under way, and in which step its heartbeats. Where messages have
// no numbers, that tells which of several connections a recording goes on with. Both are read off anchors: a message
// without a time of its own, as heartbeats are, has that of its receipt.

import type { FeedAnchor } from '../lake/feed-strand.ts'

/** What a span's first or last messages tell, nearest to its end first. */
export interface MessagePace {
  /** The median way of messages; undefined where none tells. */
  readonly lagNs: bigint | undefined
  /** Receive times of heartbeats. */
  readonly beats: readonly bigint[]
}

/** A span's first messages, and its last ones, that are looked at. */
const MESSAGES = 16
const BEATS = 8
/** Ways that differ by no more say nothing of whose messages they are, and steps. */
const LAG_NOISE_NS = 1_500_000n
const STEP_NOISE_NS = 20_000_000n

export function paceOfHead(anchors: readonly FeedAnchor[]): MessagePace {
  const told = anchors.filter(({ recvTs, ts }) => recvTs > ts).slice(0, MESSAGES)
  const beats = anchors.filter(({ recvTs, ts }) => recvTs === ts).slice(0, BEATS)
  return {
    lagNs: median(told.map(({ recvTs, ts }) => recvTs - ts)),
    beats: beats.map(({ recvTs }) => recvTs),
  }
}

export function paceOfTail(anchors: readonly FeedAnchor[]): MessagePace {
  return paceOfHead(anchors.toReversed())
}

/** The pace after more messages, which may tell nothing. */
export function goneOn(before: MessagePace, { lagNs, beats }: MessagePace): MessagePace {
  return { lagNs: lagNs ?? before.lagNs, beats: beats.length > 1 ? beats : [...beats, ...before.beats] }
}

/** Which of two paces goes on as `head`: negative for `a`, positive for `b`, 0 where nothing tells. */
export function comparePaces(a: MessagePace, b: MessagePace, head: MessagePace): number {
  return (
    compareApart(stepError(a, head), stepError(b, head), STEP_NOISE_NS) ||
    compareApart(lagError(a, head), lagError(b, head), LAG_NOISE_NS)
  )
}

/** How far the heartbeats of `head` are out of step with those of `tail`, ns. */
function stepError(tail: MessagePace, head: MessagePace): bigint | undefined {
  const period = median([...intervals(tail.beats), ...intervals(head.beats)])
  if (period === undefined || period <= 0n) return undefined
  return median(
    tail.beats.flatMap((beat) =>
      head.beats.map((next) => {
        const past = (next - beat) % period
        return past < period - past ? past : period - past
      }),
    ),
  )
}

function intervals(beats: readonly bigint[]): bigint[] {
  return beats
    .slice(1)
    .map((beat, index) => (beat > beats[index]! ? beat - beats[index]! : beats[index]! - beat))
}

function lagError(tail: MessagePace, head: MessagePace): bigint | undefined {
  if (tail.lagNs === undefined || head.lagNs === undefined) return undefined
  return tail.lagNs > head.lagNs ? tail.lagNs - head.lagNs : head.lagNs - tail.lagNs
}

function compareApart(a: bigint | undefined, b: bigint | undefined, noise: bigint): number {
  if (a === undefined || b === undefined) return 0
  return a + noise < b ? -1 : b + noise < a ? 1 : 0
}

function median(values: readonly bigint[]): bigint | undefined {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return sorted[sorted.length >> 1]
}
