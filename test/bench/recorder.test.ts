import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runRecorderBench } from '../../bench/recorder.bench.ts'

test('the recorder benchmark receives all sent messages', async () => {
  const { figures } = await runRecorderBench('smoke')
  const value = (name: string): number | undefined => figures.find((figure) => figure.name === name)?.value
  assert.equal(value('messages sent'), 2000)
  // The reply to the subscription and the snapshots come first.
  assert.equal(value('messages received'), 2000 + 1 + 24)
  assert.equal(value('gaps'), 0)
})
