import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FoldTally } from '../../server/fold/fold-tally.ts'
import type { Line } from '../../server/fold/piece.ts'
import { joinLineRuns, readLineRuns } from '../../server/fold/unnumbered-runs.ts'

function lineAt(recvTs: bigint | undefined, key: number): Line {
  const body = { kind: 'other', name: 'x' } as const
  return {
    recvTs,
    n: undefined,
    key,
    isList: false,
    messages: [{ sid: undefined, seq: undefined, ts: undefined, body }],
  }
}

test('a line that a piece repeats counts once, also with equal or no receive times, or after a clock was set back', () => {
  const [a, b, c] = [lineAt(10n, 1), lineAt(20n, 2), lineAt(20n, 3)]
  const [early, timeless] = [lineAt(5n, 4), lineAt(undefined, 5)]
  const lines = [a, b, c, b, early, a, timeless, timeless, lineAt(30n, 6), early, c]
  const tally = new FoldTally()
  const { runs } = readLineRuns({ lines, sequence: 'strict', useYesPrice: false }, tally)
  assert.deepEqual(
    runs.map((run) => run.lines.map(({ key }) => key)),
    [[1, 2, 3, 4, 5, 6]],
  )
  assert.equal(tally.repeats, 5)
})

test('a line that another piece repeats later keeps the time at which it was first received', () => {
  const [a, b, c, d] = [lineAt(10n, 1), lineAt(20n, 2), lineAt(30n, 3), lineAt(40n, 4)]
  const tally = new FoldTally()
  const runs = [
    [a, b],
    [c, a, d],
  ].flatMap((lines) => {
    const piece = { lines, sequence: 'strict', useYesPrice: false } as const
    return readLineRuns(piece, tally).runs
  })
  const [joined] = joinLineRuns(runs, tally)
  assert.deepEqual(
    joined!.lines.map(({ key }) => key),
    [1, 2, 3, 4],
  )
})
