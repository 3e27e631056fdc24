// A trade as one message of an exchange states it: a frame of a WebSocket, or a row of REST.

import { PRICE_UNITS_PER_DOLLAR, QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import type { Aggressor } from '../../shared/trades-v1.ts'
import { BadLineError, shown } from './bad-line.ts'
import { scaledInteger, scaledValue } from './decimal.ts'

export interface TradeMessage {
  readonly marketId: string
  /**
   * The trade's id. With `isUnique`, all messages of that id are one trade. Otherwise equal rows of one connection or page are
   * several trades, and their ordinal is added to the id. Null: the message does not identify the trade.
   */
  readonly id: string | null
  readonly isUnique: boolean
  /** ns. */
  readonly ts: bigint
  /** Decimals of the second in the message's time. */
  readonly tsDigits: number
  /** 1/10000 dollar. */
  readonly price: number
  /** Whether the message's price was more precise. */
  readonly isRounded: boolean
  /** 1/1000000 contract. */
  readonly qty: number
  readonly aggressor: Aggressor
  readonly block: boolean | null
}

const PRICE_DIGITS = 4
const QTY_DIGITS = 6

/** A price in dollars, rounded half up to 1/10000. Throws BadLineError. */
export function tradePrice(value: unknown): Pick<TradeMessage, 'price' | 'isRounded'> {
  const exact = scaledValue(value, PRICE_DIGITS)
  const price = exact ?? roundedPrice(String(value))
  if (price === undefined || price < 0 || price > PRICE_UNITS_PER_DOLLAR) {
    throw new BadLineError(`no price from 0 to 1 dollar: ${shown(value)}`)
  }
  return { price, isRounded: exact === undefined }
}

/** Rounds by the first digit after the kept ones. */
function roundedPrice(text: string): number | undefined {
  const fine = scaledInteger(/^(\d*\.\d{5})\d*$/.exec(text)?.[1] ?? '', PRICE_DIGITS + 1)
  return fine === undefined ? undefined : Math.floor((fine + 5) / 10)
}

/** A quantity in contracts. Throws BadLineError. */
export function tradeQuantity(value: unknown): number {
  const qty = scaledValue(value, QTY_DIGITS)
  if (qty === undefined || qty < 0) {
    throw new BadLineError(`no quantity, or finer than 1/${QTY_UNITS_PER_CONTRACT}: ${shown(value)}`)
  }
  return qty
}

/** Decimals of a second in a time: from the digits of a number, or the fraction of a text. */
export function digitsOfTime(value: unknown): number {
  const text = String(value)
  const fraction = /\.(\d+)/.exec(text)?.[1]
  const whole = /^\d+$/.exec(text)?.[0].length ?? 0
  if (fraction !== undefined) return Math.min(9, fraction.length)
  return whole > 17 ? 9 : whole > 14 ? 6 : whole > 11 ? 3 : 0
}
