// Messages as a recorder keeps them, and the lines they become: the frame in the forms of exchange-feeds, with the receive
// time around it or in it.

import type { TrueWorld } from './true-world.ts'

export type Part =
  /** The whole book of a market; Kalshi `orderbook_snapshot`, Polymarket `book`. */
  | {
      readonly kind: 'book'
      readonly market: number
      readonly levels: ReadonlyMap<string, bigint>
      /** When the book changed last, as Polymarket's books state it. */
      readonly changedTs?: bigint
    }
  | {
      readonly kind: 'change'
      readonly market: number
      readonly side: number
      readonly price: number
      readonly qty: bigint
      readonly delta: bigint
    }

export interface Message {
  /** Counts a recorder's connections. */
  readonly connection: number
  readonly recvTs: bigint
  /** The exchange's time in the frame; Kalshi's snapshots have none. */
  readonly ts: bigint | undefined
  readonly sid: number | undefined
  readonly seq: number | undefined
  /** Without parts: a trade, a heartbeat, an answer, or the recorder's mark. */
  readonly parts: readonly Part[]
  readonly other?: 'trade' | 'subscribed' | 'PONG' | 'disconnect'
  /** The market that a message without parts speaks of. */
  readonly about?: number
  /** Many books in one array, as at the start of a Polymarket connection. */
  readonly isArray?: boolean
}

export interface LineForm {
  /** Old integer fields instead of decimal strings. */
  readonly isInteger: boolean
  readonly wrapper: 'number' | 'text' | 'injected'
}

/** One line of a recording, without its end. */
export function lineOf(message: Message, world: TrueWorld, form: LineForm): string {
  if (message.other === 'PONG') return `{"recv_ts":${message.recvTs},"msg":"PONG"}`
  const frames =
    world.source === 'kalshi' ? [kalshiFrame(message, world, form)] : polymarketFrames(message, world)
  const isOne = frames.length === 1 && message.isArray !== true
  if (form.wrapper === 'injected' && isOne) {
    return JSON.stringify({ ...frames[0], _received_at: isoNs(message.recvTs) })
  }
  const content = JSON.stringify(isOne ? frames[0] : frames)
  return form.wrapper === 'text'
    ? `{"recv_ts":"${message.recvTs}","data":${content}}`
    : `{"recv_ts":${message.recvTs},"msg":${content}}`
}

function kalshiFrame(
  { sid, seq, ts, parts, other, about }: Message,
  world: TrueWorld,
  form: LineForm,
): object {
  if (other === 'disconnect') return { type: 'disconnect' }
  if (other === 'subscribed') return { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid } }
  if (other === 'trade') {
    const market_ticker = world.markets[about!]!.id
    const tsMs = Number(ts! / 1_000_000n)
    return {
      type: 'trade',
      sid,
      seq,
      msg: { market_ticker, count_fp: '1.00', ts: Math.floor(tsMs / 1000), ts_ms: tsMs },
    }
  }
  const part = parts[0]!
  const market_ticker = world.markets[part.market]!.id
  if (part.kind === 'book') {
    return { type: 'orderbook_snapshot', sid, seq, msg: { market_ticker, ...legs(part.levels, form) } }
  }
  const price = part.side === 0 ? part.price : 10_000 - part.price
  const level = form.isInteger
    ? { price: price / 100, delta: Number(part.delta / 1_000_000n) }
    : { price_dollars: decimal(BigInt(price), 4, 4), delta_fp: decimal(part.delta, 6, 2) }
  const side = part.side === 0 ? 'yes' : 'no'
  const times = form.isInteger
    ? { ts: isoNs(ts!) }
    : { ts: isoNs(ts!).replace(/\d{3}Z$/, 'Z'), ts_ms: Number(ts! / 1_000_000n) }
  return { type: 'orderbook_delta', sid, seq, msg: { market_ticker, ...level, side, ...times } }
}

// Resting bids of both legs; an empty side is absent.
function legs(levels: ReadonlyMap<string, bigint>, form: LineForm): object {
  const result: Record<string, unknown[]> = {}
  for (const [key, qty] of levels) {
    const [side, yesPrice] = key.split(':').map(Number)
    const price = side === 0 ? yesPrice! : 10_000 - yesPrice!
    const name = `${side === 0 ? 'yes' : 'no'}${form.isInteger ? '' : '_dollars_fp'}`
    const level = form.isInteger
      ? [price / 100, Number(qty / 1_000_000n)]
      : [decimal(BigInt(price), 4, 4), decimal(qty, 6, 2)]
    ;(result[name] ??= []).push(level)
  }
  return result
}

function polymarketFrames(message: Message, world: TrueWorld): object[] {
  const { parts, ts, other, recvTs } = message
  if (other === 'disconnect') return [{ event_type: 'disconnect', timestamp: String(recvTs / 1_000_000n) }]
  const books = parts.filter((part) => part.kind === 'book')
  if (books.length > 0) {
    return books.map(({ market, levels, changedTs }) => ({
      event_type: 'book',
      ...namesOf(world, market),
      timestamp: String((ts ?? changedTs!) / 1_000_000n),
      bids: bookSide(levels, 0),
      asks: bookSide(levels, 1),
    }))
  }
  const changes = parts.filter((part) => part.kind === 'change')
  const price_changes = changes.map(({ market, side, price, qty }) => ({
    asset_id: namesOf(world, market).asset_id,
    price: decimal(BigInt(price), 4, 2),
    size: decimal(qty, 6, 0),
    side: side === 0 ? 'BUY' : 'SELL',
  }))
  const { market } = namesOf(world, changes[0]!.market)
  return [{ event_type: 'price_change', market, timestamp: String(ts! / 1_000_000n), price_changes }]
}

function namesOf(world: TrueWorld, market: number): { market: string; asset_id: string } {
  const [condition, token] = world.markets[market]!.id.split(':')
  return { market: condition!, asset_id: token! }
}

function bookSide(levels: ReadonlyMap<string, bigint>, side: number): object[] {
  return [...levels]
    .filter(([key]) => key.startsWith(`${side}:`))
    .map(([key, qty]) => ({ price: decimal(BigInt(key.slice(2)), 4, 2), size: decimal(qty, 6, 0) }))
}

// `value` / 10^digits as decimal text with at least `shown` places.
function decimal(value: bigint, digits: number, shown: number): string {
  const sign = value < 0n ? '-' : ''
  const text = String(value < 0n ? -value : value).padStart(digits + 1, '0')
  const fraction = text.slice(-digits).replace(/0+$/, '').padEnd(shown, '0')
  return `${sign}${text.slice(0, -digits)}${fraction === '' ? '' : `.${fraction}`}`
}

function isoNs(ts: bigint): string {
  const seconds = new Date(Number(ts / 1_000_000_000n) * 1000).toISOString().slice(0, 19)
  return `${seconds}.${String(ts % 1_000_000_000n).padStart(9, '0')}Z`
}
