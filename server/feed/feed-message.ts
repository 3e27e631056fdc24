// One frame as the fold needs it, independent of the exchange. Each exchange converts its frames to this form.

import { isDeepStrictEqual } from 'node:util'
import type { BookLevel } from '../lake/exact-book.ts'

/** A level's new quantity (`set`) or its change (`add`); units are those of lob.v1. */
export interface LevelChange extends BookLevel {
  readonly marketId: string
}

export type FeedBody =
  /** The whole book of a market. */
  | { readonly kind: 'book'; readonly marketId: string; readonly levels: readonly BookLevel[] }
  /** `event` is EVENT_ADD or EVENT_SET of lob.v1. */
  | { readonly kind: 'changes'; readonly event: number; readonly changes: readonly LevelChange[] }
  /** The client's own command, if the recording has it. */
  | { readonly kind: 'subscribe'; readonly id: number; readonly useYesPrice: boolean | undefined }
  | { readonly kind: 'subscribed'; readonly id: number; readonly subscription: number | undefined }
  /** The complete list of a subscription's markets after a change. */
  | { readonly kind: 'following'; readonly marketIds: ReadonlySet<string> }
  | { readonly kind: 'unsubscribed' }
  /** The client no longer listens to these tokens. */
  | { readonly kind: 'left'; readonly tokens: ReadonlySet<string> }
  | { readonly kind: 'finished'; readonly marketId: string }
  /** The connection ended. */
  | { readonly kind: 'disconnect' }
  /** Changes no book, but shows that the connection is alive: a trade, a heartbeat. */
  | { readonly kind: 'other'; readonly name: string }

export interface FeedMessage {
  /** The subscription, and the message's number in it; `undefined` if the exchange does not number messages. */
  readonly sid: number | undefined
  readonly seq: number | undefined
  /** The exchange's time, ns. A book without a number may carry the time of its last change. */
  readonly ts: bigint | undefined
  readonly body: FeedBody
}

/** The markets of the book or changes in a message. */
export function marketsOf(body: FeedBody): readonly string[] {
  if (body.kind === 'book') return [body.marketId]
  return body.kind === 'changes' ? body.changes.map(({ marketId }) => marketId) : []
}

/** Adds these markets to a set. */
export function addMarkets(body: FeedBody, markets: Set<string>): void {
  if (body.kind === 'book') markets.add(body.marketId)
  else if (body.kind === 'changes') for (const { marketId } of body.changes) markets.add(marketId)
}

/** Whether a book or a change has no sequence number, which may happen in recordings of exchanges with numbers. */
export function lacksNumber({ sid, seq, body: { kind } }: FeedMessage): boolean {
  return (kind === 'book' || kind === 'changes') && (sid === undefined || seq === undefined)
}

/** Whether the messages of two lines state the same event. One connection does not send an event twice. */
export function areOfOneEvent(a: readonly FeedMessage[], b: readonly FeedMessage[]): boolean {
  return (
    a[0]?.ts !== undefined &&
    a.length === b.length &&
    a.every(
      ({ ts, body }, index) =>
        ts === b[index]!.ts && isDeepStrictEqual(contentOf(body), contentOf(b[index]!.body)),
    )
  )
}

/** A body as a plain object: decoded lines have lazy properties, which a comparison would not see. */
function contentOf(body: FeedBody): object {
  return body.kind === 'changes' ? { event: body.event, changes: body.changes } : body
}
