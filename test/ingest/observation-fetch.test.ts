import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectRows, type ParsedRow, PARSE_TURN_MS_MAX } from '../../server/ingest/observation-fetch.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'

/** Rows that each take longer to decode than one turn of the event loop may last. */
function* slowRows(count: number): Generator<ParsedRow, void, void> {
  for (let index = 0; index < count; index += 1) {
    const endMs = performance.now() + PARSE_TURN_MS_MAX + 1
    while (performance.now() < endMs);
    yield { kind: 'rejected', reason: 'synthetic' }
  }
}

test('decoding yields to the event loop', async () => {
  let turns = 0
  const count = (): void => {
    turns += 1
    immediate = setImmediate(count)
  }
  let immediate = setImmediate(count)
  const { rejected } = await collectRows('test', slowRows(5))
  clearImmediate(immediate)
  assert.equal(rejected.synthetic, 5)
  assert.ok(turns >= 4, `${turns} turns`)
})

test('only unusable rows, and not synthetic ones, count as a change of format', async () => {
  const row = (reason: 'synthetic' | 'malformed' | 'other_report'): ParsedRow => ({
    kind: 'rejected',
    reason,
  })
  assert.deepEqual((await collectRows('test', [row('synthetic')])).rows, [])
  assert.deepEqual((await collectRows('test', [])).rows, [])
  for (const reason of ['malformed', 'other_report'] as const) {
    await assert.rejects(collectRows('test', [row(reason)]), UpstreamError)
  }
})
