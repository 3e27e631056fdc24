// The text of a frame of changes is read like the frame that JSON.parse makes of it, or not at all.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Exchange } from '../../server/exchanges/exchange.ts'
import { exchangeOf } from '../../server/exchanges/registry.ts'
import { isFrame } from '../../server/feed/frame.ts'
import { MARKET, NO, YES } from './polymarket-frames.ts'

// As the exchanges' documentation and recordings have them.
const DELTA =
  '{"type":"orderbook_delta","sid":1,"seq":2,"msg":{"market_ticker":"KXHIGHNY-26JUN24-T82","market_id":"0445cdcb",' +
  '"price_dollars":"0.1000","delta_fp":"-7.00","side":"yes","ts":"2026-06-24T15:49:55.033836Z","ts_ms":1782316195033}}'
const CHANGES =
  `"price_changes":[{"asset_id":"${YES}","price":"0.5","size":"200","side":"BUY","hash":"5662","best_bid":"0.5","best_ask":"1"},` +
  `{"asset_id":"${NO}","price":"0.5","side":"SELL","size":"0","hash":"1895","best_bid":"0","best_ask":"0.5"}]`
const TEXTS = {
  kalshi: [
    DELTA,
    DELTA.replace('"market_id":"0445cdcb",', ''),
    DELTA.replace(',"ts_ms":1782316195033', ''),
    DELTA.replace(',"ts":"2026-06-24T15:49:55.033836Z"', ''),
  ],
  polymarket: [
    `{"event_type":"price_change","market":"${MARKET}","timestamp":"1757908892351",${CHANGES}}`,
    `{"market":"${MARKET}",${CHANGES},"event_type":"price_change","timestamp":"1729084877448"}`,
    `{"market":"${MARKET}",${CHANGES},"timestamp":"1729084877448","event_type":"price_change"}`,
  ],
}
/** What a mutation puts into a text. */
const TOKENS =
  '1 5 9 a " \\ { } [ ] , : 0 - . 1e3 00 true null "side":"no" "seq":3 "subaccount":1 "_received_at":"2026-06-24" \u0000 \n é \ud800'
    .split(' ')
    .concat(' ')

const read = (action: () => unknown): unknown => {
  try {
    return action()
  } catch (error) {
    return `error: ${String(error)}`
  }
}

/** What the frame of `json` is read as. */
function parsed(exchange: Exchange, json: string): unknown {
  const frame: unknown = JSON.parse(json)
  assert.ok(isFrame(frame), json)
  return read(() => exchange.readFrame(frame))
}

for (const source of ['kalshi', 'polymarket'] as const) {
  const exchange = exchangeOf(source)
  const texts = TEXTS[source]
  const readText = (json: string): unknown => read(() => exchange.readText!(json))

  test(`${source}: changes in the exchange's own form are read from their text`, () => {
    for (const text of texts) {
      const message = readText(text)
      assert.ok(isFrame(message), text)
      assert.deepEqual(message, parsed(exchange, text))
    }
  })

  test(`${source}: a text with other members, values or characters is read like its JSON, or not at all`, () => {
    let count = 0
    const cut = fc.record({
      text: fc.constantFrom(...texts),
      at: fc.nat({ max: 600 }),
      length: fc.nat({ max: 2 }),
      token: fc.constantFrom('', ...TOKENS),
    })
    fc.assert(
      fc.property(cut, ({ text, at: place, length, token }) => {
        const at = place % text.length
        const changed = text.slice(0, at) + token + text.slice(at + length)
        const message = readText(changed)
        if (message === undefined) return
        count++
        assert.deepEqual(message, parsed(exchange, changed), changed)
        const frame = JSON.parse(changed)
        assert.equal(exchange.publicPart(frame), frame, changed)
      }),
      { numRuns: 20_000 },
    )
    assert.ok(count > 1_000, `${count} texts were read`)
  })
}
