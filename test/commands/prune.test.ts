import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../../server/options/usage-error.ts'
import { pruneCommand } from '../../server/commands/prune.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { takeLock } from '../../server/fold/series-lock.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { processEnd } from '../support/program.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { foldHere, writeSegment } from '../sync/raw-lakes.ts'

async function prune(...args: string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = []
  const stream = Object.assign(Object.create(process.stdout), {
    write: (text: string) => lines.push(text) > 0,
  })
  const code = await pruneCommand(args, {
    env: {},
    stdin: process.stdin,
    stdout: stream,
    stderr: stream,
    signal: new AbortController().signal,
  })
  return { code, text: lines.join('') }
}

const filesOf = async (lake: string): Promise<string[]> =>
  (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet'))

test('lists files to remove, removes them with --apply, and keeps files without a copy', async (t) => {
  const [lake, remote] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  for (const place of [lake, remote]) await cp(SAMPLE_LAKE, place, { recursive: true })
  await rm(join(remote, 'lob/source=kalshi/series=KXHIGHNY/date=2026-07-01/lob.parquet'))
  await writeFile(join(remote, 'lob/source=kalshi/series=KXHIGHDEN/date=2026-07-01/lob.parquet'), 'other')
  const before = await filesOf(lake)
  const args = ['--lake', lake, '--before', '2026-07-03', '--kept-in', remote]
  const shown = await prune(...args)
  assert.equal(shown.code, 1)
  assert.match(shown.text, /^8 files \([\d.]+ MiB\) to remove with --apply, 2 stay$/m)
  assert.deepEqual(await filesOf(lake), before)
  const applied = await prune(...args, '--apply')
  assert.match(applied.text, /^8 files \([\d.]+ MiB\) removed, 2 stay$/m)
  const isLeft = (name: string): boolean =>
    name.includes('07-03') ||
    (name.startsWith('lob/') && name.includes('07-01') && /KXHIGHNY|KXHIGHDEN/.test(name))
  assert.deepEqual(await filesOf(lake), before.filter(isLeft))
  assert.equal((await prune('--lake', lake, '--before', '2026-07-03', '--apply')).code, 0)
  assert.deepEqual(
    await filesOf(lake),
    before.filter((name) => name.includes('07-03')),
  )
})

test('a file of a replaced date that is not yet pushed is kept, because the push would remove its copy', async (t) => {
  const [lake, remote] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const [date, hour] = ['2026-06-24', { fromMinute: 1, toMinute: 6, recorder: 'import' }]
  const { name } = await writeSegment(lake, { ...hour, date, hour: 3 })
  await foldHere(lake, [date])
  await cp(lake, remote, { recursive: true })
  await foldHere(lake, [date], new Map([[date, { added: [name], replacedBy: 1 }]]))
  const kept = await prune('--lake', lake, '--before', '2026-07-03', '--kept-in', remote, '--apply')
  assert.match(kept.text, /lob\.parquet is of a date whose manifest differs in .*: push first$/m)
  assert.match(kept.text, /^0 files \(0\.0 MiB\) removed, 1 stay$/m)
  await cp(lake, remote, { recursive: true })
  assert.equal(
    (await prune('--lake', lake, '--before', '2026-07-03', '--kept-in', remote, '--apply')).code,
    0,
  )
})

test('requests the manifest of a date once', async (t) => {
  const [lake, server] = [await temporaryDirectory(t), await startS3Server(t)]
  const date = '2026-06-24'
  for (const [hour, series] of ['NY', 'DEN', 'CHI'].entries()) {
    const market = `KXHIGH${series}-26JUN24-T82`
    await writeSegment(lake, { recorder: 'import', date, hour, fromMinute: 1, toMinute: 6, market })
  }
  await foldHere(lake, [date])
  const store = server.store()
  const result = await syncLake({ lake, remote: store, direction: 'push' })
  assert.deepEqual([result.failures, result.conflicts], [[], []])
  server.requests.length = 0
  const place = [`s3://${BUCKET}`, '--s3-endpoint', server.endpoint]
  const { code, text } = await prune('--lake', lake, '--before', '2026-07-03', '--kept-in', ...place)
  assert.equal(code, 0, text)
  assert.match(text, /^3 files /m)
  assert.equal(server.requests.filter(({ key }) => key.endsWith('/manifest.json')).length, 1)
})

test('refuses dates that are still written, and calls without a lake or a date', async () => {
  const today = new Date().toISOString().slice(0, 10)
  for (const args of [
    ['--before', '2026-07-01'],
    ['--lake', 'x'],
    ['--lake', 'x', '--before', today],
    ['--lake', 'x', '--before', 'yesterday'],
  ]) {
    await assert.rejects(prune(...args), UsageError)
  }
})

test('a missing lake is an error', async (t) => {
  const lake = join(await temporaryDirectory(t), 'nowhere')
  await assert.rejects(prune('--lake', lake, '--before', '2026-07-01', '--apply'), {
    message: `--lake: there is no directory ${lake}`,
  })
})

test('a series that another process is writing is kept', async (t) => {
  const lake = await temporaryDirectory(t)
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  const before = await filesOf(lake)
  const place = { lake, source: 'kalshi', series: 'KXHIGHNY' } as const
  const lock = await takeLock(place, { waitMs: 0, onLost: () => {} })
  const { code, text } = await prune('--lake', lake, '--before', '2026-07-02', '--apply')
  await lock.release()
  assert.equal(code, 1)
  assert.match(
    text,
    /^stays: .*KXHIGHNY.*2026-07-01\/lob.parquet is locked: process \d+ on .* writes to its series$/m,
  )
  assert.deepEqual(
    await filesOf(lake),
    before.filter((name) => !name.includes('07-01') || name.includes('KXHIGHNY')),
  )
})

test('prune and migrate report that a lake is mounted read-only', async (t) => {
  const lake = await temporaryDirectory(t)
  const partition = join(lake, 'lob/source=kalshi/series=A/date=2025-01-01')
  await mkdir(partition, { recursive: true })
  await writeFile(join(partition, 'lob.parquet'), '')
  const script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
  const before = ['unshare', '--map-root-user', '--mount', 'sh', '-c', script, lake]
  if (spawnSync(before[0]!, [...before.slice(1), 'true']).status !== 0) {
    t.skip('nothing can be mounted here')
    return
  }
  for (const args of [['prune', '--before', '2026-01-01', '--apply'], ['migrate']]) {
    const program = [process.execPath, ...PROGRAM_ARGUMENTS, ...args, '--lake', lake]
    const { code, stderr } = await processEnd([...before, ...program])
    assert.equal(code, 1, stderr)
    assert.match(stderr, /the lake .* cannot be written: its file system is mounted read-only \(EROFS/)
  }
})
