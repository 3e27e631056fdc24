import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { IngestProgressView } from '../../server/commands/ingest-progress.ts'

/** The output of a view for ten steps of a second and twenty rows each, of which four are done. */
function written(isTTY: boolean): string {
  const output = Object.assign(new PassThrough(), { isTTY, columns: 200 })
  let text = ''
  output.on('data', (chunk) => (text += String(chunk)))
  let nowMs = 0
  const view = new IngestProgressView(output, { nowMs: () => nowMs })
  view.onStart('iem')
  for (let done = 1; done <= 4; done += 1) {
    nowMs += 1_000
    view.onEvent({ kind: 'written', source: 'iem', scope: 'NYC', title: `NYC month ${done}`, rowCount: 20 })
    view.onStep('iem', done, 10)
  }
  view.onEnd('iem', '4 steps')
  view.stop()
  output.read()
  return text
}

test('a terminal shows steps, rows, rate and time left of each source', () => {
  const text = written(true)
  assert.match(text, /iem +\[.*\] 4\/10 · 80 rows · 20\.0 rows\/s · 6 s left · NYC month 4/)
  assert.match(text, /iem: 4 steps/)
})

test('without a terminal every step is a line', () => {
  const lines = [1, 2, 3, 4].map((month) => `iem NYC month ${month}: 20 rows\n`)
  assert.equal(written(false), `${lines.join('')}iem: 4 steps\n`)
})
