// The subscription to trades goes on after a refused change.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TradeSubscription } from '../../server/exchanges/kalshi/trade-subscription.ts'

const BARE = { sid: undefined, seq: undefined, code: undefined, text: '' }

function started(): { trades: TradeSubscription; troubles: string[]; sent: (...books: string[]) => unknown } {
  const troubles: string[] = []
  const trades = new TradeSubscription((text) => troubles.push(text))
  let id = 0
  const sent = (...books: string[]): unknown => {
    const text = trades.next(new Set(books), new Set(books), () => ++id)
    return text === undefined ? undefined : JSON.parse(text)
  }
  return { trades, troubles, sent }
}

for (const { title, changed, action } of [
  { title: 'removal', changed: ['A'], action: 'delete_markets' },
  { title: 'addition', changed: ['A', 'B', 'C'], action: 'add_markets' },
]) {
  test(`a refused ${title} of a market does not prevent that later ones are added`, () => {
    const { trades, troubles, sent } = started()
    sent('A', 'B')
    trades.take({ ...BARE, type: 'subscribed', id: 1, sid: 7 })
    sent(...changed)
    assert.ok(trades.take({ ...BARE, type: 'error', id: 2, code: 5, text: 'Unknown market' }))
    assert.deepEqual(troubles, [`trades: ${action} was refused: error 5: Unknown market`])
    assert.equal(sent(...changed), undefined, 'the refused change is not requested again')
    assert.deepEqual(sent(...changed, 'D'), {
      id: 3,
      cmd: 'update_subscription',
      params: { sid: 7, action: 'add_markets', market_tickers: ['D'] },
    })
  })
}

test('after a refused subscription a connection requests no trades', () => {
  const { trades, troubles, sent } = started()
  sent('A')
  assert.ok(trades.take({ ...BARE, type: 'error', id: 1, code: 8, text: 'Unknown channel' }))
  assert.deepEqual(troubles, ['trades are not recorded: error 8: Unknown channel'])
  assert.equal(sent('A', 'B'), undefined)
  trades.reset()
  assert.ok(sent('A', 'B'))
})
