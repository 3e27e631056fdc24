import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runPartQueue } from '../../bench/part-queue.ts'
import { inFullGear } from '../support/effort.ts'
import { SERVER_URL } from '../support/postgres.ts'

const skip = SERVER_URL === null ? 'without a PostgreSQL server' : inFullGear

test('the simulation of the queue gets every part of no work done', { skip }, async () => {
  const { figures } = await runPartQueue('smoke', SERVER_URL ?? undefined)
  assert.deepEqual(
    figures.filter(({ unit }) => unit === 'parts/s').map(({ name }) => name),
    ['20 parts: submitted', '20 parts, 1 workers', '20 parts, 2 workers'],
  )
})
