// The parts of a Kalshi message that the connection needs: its number, answers and errors. Deltas and trades, thousands a second,
// are not parsed for this: their first bytes are enough.

import { parsedJson } from '../../../shared/parsed-json.ts'
import { isFrame } from '../../feed/frame.ts'

export interface KalshiControl {
  readonly type: string
  readonly id: number | undefined
  readonly sid: number | undefined
  readonly seq: number | undefined
  readonly code: number | undefined
  readonly text: string
  /** The market of a lifecycle message, and its event. */
  readonly market?: { readonly ticker: string; readonly event: string } | undefined
}

/** A command that starts a subscription, or changes one. */
export interface KalshiCommand {
  readonly id: number
  readonly action: 'subscribe' | 'add_markets' | 'delete_markets' | 'get_snapshot'
  readonly tickers: readonly string[]
}

const HEAD_BYTES = 96
const NUMBERED = { id: undefined, code: undefined, text: '' }
const NUMBERED_HEAD = /^\{"type":"(orderbook_delta|trade)","sid":(\d{1,15}),"seq":(\d{1,15}),"msg":/

/** `undefined` if the data is not a JSON object, which the decoder reports. */
export function readKalshiControl(data: Buffer): KalshiControl | undefined {
  const head = NUMBERED_HEAD.exec(data.toString('latin1', 0, Math.min(HEAD_BYTES, data.length)))
  if (head !== null) {
    const [, type = '', sid, seq] = head
    return { ...NUMBERED, type, sid: Number(sid), seq: Number(seq) }
  }
  const frame = parsedJson(data.toString('utf8'))
  if (!isFrame(frame) || typeof frame['type'] !== 'string') return undefined
  const content = isFrame(frame['msg']) ? frame['msg'] : {}
  return {
    type: frame['type'],
    id: integerOf(frame['id']),
    sid: integerOf(frame['sid']) ?? integerOf(content['sid']),
    seq: integerOf(frame['seq']),
    code: integerOf(content['code']),
    text: typeof content['msg'] === 'string' ? content['msg'].slice(0, 200) : '',
    market: marketOf(content),
  }
}

/** @param options of a subscribe command */
export function commandText(
  { id, action, tickers: market_tickers }: KalshiCommand,
  sid: number | undefined,
  channel: string,
  options: object = {},
): string {
  const isFirst = action === 'subscribe'
  const params = isFirst
    ? { channels: [channel], market_tickers, ...options }
    : { sid, action, market_tickers }
  return JSON.stringify({ id, cmd: isFirst ? 'subscribe' : 'update_subscription', params })
}

function marketOf({ market_ticker: ticker, event_type: event }: Readonly<Record<string, unknown>>) {
  return typeof ticker === 'string' && typeof event === 'string' ? { ticker, event } : undefined
}

function integerOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}
