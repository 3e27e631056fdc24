import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Chain, Connections } from '../../server/fold/chain.ts'
import { FoldTally } from '../../server/fold/fold-tally.ts'
import { NumberedChains } from '../../server/fold/numbered-chains.ts'
import type { ChainTarget } from '../../server/fold/numbered-chains.ts'
import type { Line } from '../../server/fold/piece.ts'
import { EVENT_ADD } from '../../shared/lob-v1.ts'

/** This many messages as arguments of one call would overflow the stack. */
const MANY = 150_000

function deltaLine(seq: number): Line {
  const at = BigInt(seq)
  const body = { kind: 'changes', event: EVENT_ADD, changes: [] } as const
  return { recvTs: at, n: undefined, key: seq, isList: false, messages: [{ sid: 1, seq, ts: at, body }] }
}

const SECOND = 1_000_000_000n
/** How far a recorder's clock is behind in `marketLine`. */
const BEHIND = 90n * SECOND

/** A message of a market at exchange time `seconds`; a book does not state its time. */
function marketLine(seq: number, marketId: string, seconds: number, isBook = false): Line {
  const at = BigInt(10_000 + seconds) * SECOND
  const change = { marketId, side: 0, price: 4000, qty: 1 } as const
  const body = isBook
    ? ({ kind: 'book', marketId, levels: [] } as const)
    : ({ kind: 'changes', event: EVENT_ADD, changes: [change] } as const)
  const message = { sid: 1, seq, ts: isBook ? undefined : at, body }
  return { recvTs: at - BEHIND, n: undefined, key: 1_000 * seconds + seq, isList: false, messages: [message] }
}

/** The numbers of each chain's messages, from pieces of one hour. */
function chainsOf(pieces: readonly (readonly Line[])[]): {
  readonly chains: number[][]
  readonly tally: FoldTally
} {
  const chains: number[][] = []
  const tally = new FoldTally()
  const target: ChainTarget = {
    connections: new Connections(),
    take: (chain, { message }) => {
      chains[chain.id]!.push(message.seq!)
    },
    addChain: (sid, connection, isBegun, isTurned) => {
      chains.push([])
      return new Chain(chains.length - 1, sid, connection, isBegun, isTurned)
    },
  }
  const numbered = new NumberedChains(target, tally)
  numbered.read(pieces.map((lines) => ({ lines, sequence: 'strict', useYesPrice: true })))
  numbered.finish()
  return { chains, tally }
}

suite('chains of numbered messages', () => {
  test('an hour can have any number of messages', () => {
    const lines = Array.from({ length: MANY }, (_, index) => deltaLine(index + 1))
    assert.deepEqual(
      chainsOf([lines]).chains.map((seqs) => seqs.length),
      [MANY],
    )
  })

  test('files of single markets fill a connection up to its restart, also with a slow clock', () => {
    const one = [
      marketLine(1, 'A', 0, true),
      marketLine(3, 'A', 10),
      marketLine(5, 'A', 20),
      marketLine(1, 'A', 40, true),
      marketLine(3, 'A', 50),
    ]
    const other = [marketLine(2, 'B', 5, true), marketLine(4, 'B', 15), marketLine(6, 'B', 35)]
    assert.deepEqual(chainsOf([one, other]).chains[0], [1, 2, 3, 4, 5, 6])
  })

  test('a line that a piece repeats counts once, at any position', () => {
    const [a, b, c, d] = [1, 2, 3, 4].map((seq) => deltaLine(seq))
    const { chains, tally } = chainsOf([[a!, b!, b!, c!, a!, c!, d!]])
    assert.deepEqual(chains, [[1, 2, 3, 4]])
    assert.equal(tally.repeats, 3)
  })
})
