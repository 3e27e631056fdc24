// The soak at smoke size: the real recorder over a midnight, with kills. Also tests that the comparison detects differences.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LakeComparison } from '../../bench/soak-compare.ts'
import { runSoak } from '../../bench/soak.ts'
import { levelOf, SoakTruth } from '../../bench/soak-truth.ts'
import { inFullGear } from '../support/effort.ts'

test('the soak finds every row of the exchange in the lake', { skip: inFullGear }, async () => {
  const { figures, notes } = await runSoak('smoke')
  const value = (name: string): number => {
    const figure = figures.find((each) => each.name === name)
    assert.ok(figure !== undefined, name)
    return figure.value
  }
  const told = notes.join('\n')
  assert.equal(value('rows that differ'), 0, told)
  assert.equal(value('rows missing within a connection'), 0, told)
  assert.equal(value('rows with an unknown book'), 0, told)
  assert.equal(value('lost at the last end'), 0, told)
  assert.ok(value('changes in the lake') > value('changes of the exchange') / 4, told)
  assert.ok(value('gaps') > 0, told)
  assert.ok(Number.isFinite(value('log of the date before, removed after midnight')), told)
})

const BID_40 = levelOf(0, 40)

/** One market: a level of 10.00, then 5.00 more and 5.00 less of it. */
function scene(): { truth: SoakTruth; seqs: readonly number[] } {
  const truth = new SoakTruth(['M'])
  const changes = [1000, 500, -500].map((delta, index) =>
    truth.change({ market: 0, level: BID_40, delta, micros: 1_000_000 + index }),
  )
  const connection = truth.connect()
  return { truth, seqs: changes.map((change) => truth.tell(connection, change)) }
}

interface Told {
  readonly seq: number
  readonly delta: bigint
  readonly price?: number
  readonly ts?: bigint
}

function compared(truth: SoakTruth, rows: readonly Told[], isKnown = true) {
  const comparison = new LakeComparison(truth)
  const common = { market: 0, side: 0, price: 4000 }
  if (isKnown) comparison.take({ ...common, ts: 0n, recvTs: 0n, seq: 0n, event: 0, qty: 0n })
  for (const { seq, delta, price = 4000, ts } of rows)
    comparison.take({
      ...common,
      price,
      ts: ts ?? 1_000_000_000n + BigInt(seq - 1) * 1000n,
      recvTs: 2_000_000_000n,
      seq: BigInt(seq),
      event: 2,
      qty: delta * 10_000n,
    })
  return comparison.result()
}

test('the comparison accepts correct rows and reports each wrong one', () => {
  const { truth, seqs } = scene()
  const [first, second, third] = seqs as [number, number, number]
  const right: Told[] = [
    { seq: first, delta: 1000n },
    { seq: second, delta: 500n },
    { seq: third, delta: -500n },
  ]
  const good = compared(truth, right)
  assert.deepEqual([good.differentRows, good.missingRows, good.unknownRows, good.lostAtEnds], [0, 0, 0, [0]])
  assert.equal(compared(truth, right.slice(0, 2)).lostAtEnds[0], 1)
  assert.equal(compared(truth, right, false).unknownRows, 3)
  // Without the second row, one row is missing, and the book after the third is wrong.
  const less = compared(truth, [right[0]!, right[2]!])
  assert.deepEqual([less.missingRows, less.differentRows], [1, 1])
  for (const wrong of [
    { ...right[1]!, delta: 400n },
    { ...right[1]!, price: 4100 },
    { ...right[1]!, ts: 5n },
    { ...right[1]!, seq: 77 },
    right[0]!,
  ])
    assert.ok(compared(truth, [right[0]!, wrong, right[2]!]).differentRows > 0, JSON.stringify(wrong, text))
})

function text(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
