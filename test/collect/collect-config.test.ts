// How options and environment variables configure a collecting process, and which are refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ingestCommand } from '../../server/commands/ingest.ts'
import type { CommandIo } from '../../server/commands/command.ts'
import { parseOptions } from '../../server/options/options.ts'
import {
  COLLECT_OPTIONS,
  type CollectConfig,
  readCollectConfig,
} from '../../server/collect/collect-config.ts'
import { describeConfig, readServeCall } from '../../server/service/config.ts'
import { SOURCE_NAMES } from '../../server/ingest/source.ts'
import { TEST_KEY_ID, TEST_PRIVATE_KEY } from '../support/recorder-harness.ts'

const KEY = { BOOKCAST_KALSHI_KEY_ID: TEST_KEY_ID, BOOKCAST_KALSHI_PRIVATE_KEY: TEST_PRIVATE_KEY }
const MINUTE_MS = 60_000

function read(lake: string | null, args: readonly string[], env: NodeJS.ProcessEnv = {}): CollectConfig {
  return readCollectConfig(parseOptions(args, env, COLLECT_OPTIONS), env, lake)
}

test('without a lake only the sources are polled', () => {
  const { recording, compaction, push } = read(null, [])
  assert.deepEqual([recording, compaction, push], [null, null, null])
})

test('a server and a collector poll the sources that BOOKCAST_INGEST_SOURCES names', () => {
  const env = { BOOKCAST_COLLECT: 'yes', BOOKCAST_LAKE: 'l', BOOKCAST_INGEST_SOURCES: 'iem, climate-nws' }
  const call = readServeCall([], env)
  assert.ok(call !== 'help')
  assert.deepEqual(call.config.collect?.names, ['iem', 'climate-nws'])
  assert.deepEqual(read(null, ['--source', 'none'], env).names, [])
  assert.deepEqual(read(null, []).names, SOURCE_NAMES)
  assert.throws(() => readServeCall([], { ...env, BOOKCAST_INGEST_SOURCES: 'iem,iom' }), {
    name: 'UsageError',
    message: /^BOOKCAST_INGEST_SOURCES takes exchange-catalogue, .*, not "iom"$/,
  })
})

test('a lake is compacted, and rows stay in the store for the grace period if the lake is pushed', () => {
  const delayMs = 36 * 60 * MINUTE_MS
  const intervalMs = 15 * MINUTE_MS
  assert.deepEqual(read('l', []).compaction, { lake: 'l', delayMs, graceMs: 0, intervalMs })
  const { compaction, push } = read('l', ['--sync-interval-ms', '60000'], {
    BOOKCAST_SYNC_TO: 's3://bucket/x',
  })
  assert.deepEqual(compaction, { lake: 'l', delayMs, graceMs: 15 * MINUTE_MS, intervalMs })
  assert.deepEqual([push?.lake, push?.to, push?.intervalMs], ['l', 's3://bucket/x', MINUTE_MS])
  const graceMs = read('l', ['--compact-grace-minutes', '90']).compaction?.graceMs
  assert.equal(graceMs, 90 * MINUTE_MS)
  assert.equal(read('l', ['--compact', 'off']).compaction, null)
})

test('order books are recorded when their series are named', () => {
  const { recording } = read('l', ['--polymarket-series', 'a,b'], {
    ...KEY,
    BOOKCAST_KALSHI_SERIES: 'KXHIGHNY',
  })
  assert.deepEqual([recording?.kalshi?.series, recording?.polymarket?.series], [['KXHIGHNY'], ['a', 'b']])
  assert.throws(() => read('l', ['--kalshi-series', 'KXHIGHNY']), { name: 'UsageError', message: /KEY_ID/ })
})

for (const [what, lake, args, message] of [
  ['recording without a lake', null, ['--kalshi-series', 'KXHIGHNY'], /^--kalshi-series needs a lake/],
  ['pushing without a lake', null, ['--sync-to', 's3://bucket'], /^--sync-to needs a lake/],
  ['a place that is none', 'l', ['--sync-to', 's3://B'], /^--sync-to takes s3/],
  ['a grace that is none', 'l', ['--compact-grace-minutes', 'long'], /^--compact-grace-minutes must be/],
  ['a choice that is none', 'l', ['--compact', 'yes'], /^--compact must be one of on, off/],
] as const) {
  test(`refuses ${what}`, () => {
    assert.throws(() => read(lake, args), { name: 'UsageError', message })
  })
}

test('a server collects into the lake that it serves, unless it only copies the lake', () => {
  const env = { ...KEY, BOOKCAST_COLLECT: 'yes', BOOKCAST_KALSHI_SERIES: 'KXHIGHNY', BOOKCAST_LAKE: 'l' }
  const call = readServeCall([], env)
  assert.ok(call !== 'help')
  assert.deepEqual([call.config.collect?.compaction?.lake, call.config.collect?.recording?.lake], ['l', 'l'])
  const shown = describeConfig(call.config)
  assert.ok(shown.includes('KXHIGHNY') && !shown.includes(TEST_KEY_ID) && !shown.includes('PRIVATE'))
  assert.throws(() => readServeCall(['--sync-from', 's3://bucket'], env), {
    name: 'UsageError',
    message: /^BOOKCAST_KALSHI_SERIES needs a lake \(--lake\) that is not kept by --sync-from$/,
  })
  const copy = readServeCall(['--sync-from', 's3://bucket'], { BOOKCAST_COLLECT: 'yes', BOOKCAST_LAKE: 'l' })
  assert.ok(copy !== 'help')
  assert.equal(copy.config.collect?.compaction, null)
})

test('ingest refuses an invalid metrics address', async () => {
  const io = { env: {} } as unknown as CommandIo
  await assert.rejects(ingestCommand(['--metrics', 'on'], io), {
    name: 'UsageError',
    message: /^--metrics must be none or <host>:<port>, not "on"$/,
  })
  // The error names the next wrong option, so "none" was accepted.
  await assert.rejects(ingestCommand(['--metrics', 'none', '--log-level', 'loud'], io), {
    name: 'UsageError',
    message: /^--log-level/,
  })
})
