// Two servers behind nginx that are restarted in turn, at smoke size.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { NGINX } from '../../bench/nginx-proxy.ts'
import { runReplicas } from '../../bench/replicas.ts'
import { startBenchServersCold } from '../support/cold-workers.ts'
import { inFullGear } from '../support/effort.ts'

startBenchServersCold()

let lake: BenchLake
before(async () => {
  lake = await BenchLake.create()
})
after(() => lake.remove())

const skip = NGINX === undefined ? 'nginx is not installed' : inFullGear

test('no request fails when a server behind nginx is restarted', { skip }, async () => {
  const { figures, notes } = await runReplicas(lake, 'smoke')
  const value = (name: string): number => figures.find((figure) => figure.name === name)?.value ?? Number.NaN
  assert.ok(value('restarts') > 0)
  assert.ok(value('small requests') > 0 && value('streams') > 0)
  assert.equal(value('requests and streams that failed'), 0, notes.join('\n'))
  assert.equal(value('streams that ended whole with other bytes'), 0)
})
