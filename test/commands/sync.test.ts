import assert from 'node:assert/strict'
import { mkdir, readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { sealDate } from '../../server/raw/date-removal.ts'
import { readTree, writeTree } from '../support/lake-tree.ts'
import { bookcast } from '../support/program.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { foldHere, readWhole, writeSegment } from '../sync/raw-lakes.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const KEY = 'observations/station=NYC/year=2026/observations.parquet'

const sync = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => bookcast(['sync', ...args], { env })

test('pushes to and pulls from a bucket with one line a step, and reports conflicts', async (t) => {
  const server = await startS3Server(t)
  const [lake, copy] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeTree(lake, { [KEY]: 'rows' })
  const place = `s3://${BUCKET}/some/prefix`
  const pushed = await sync(['--lake', lake, '--to', place, '--s3-endpoint', server.endpoint])
  assert.equal(pushed.code, 0, pushed.stderr)
  assert.match(pushed.stdout, /^1 files, 1 transferred \(0\.0 MiB\), 0 conflicts, 0 failed/)
  assert.match(pushed.stderr, new RegExp(`transferred ${KEY}\n`))
  const environment = {
    BOOKCAST_SYNC_FROM: place,
    BOOKCAST_LAKE: copy,
    BOOKCAST_S3_ENDPOINT: server.endpoint,
  }
  assert.equal((await sync([], environment)).code, 0)
  assert.deepEqual(await readTree(copy), await readTree(lake))
  await writeTree(copy, { [KEY]: 'local' })
  await writeTree(lake, { [KEY]: 'newer' })
  assert.equal((await sync(['--lake', lake, '--to', place, '--endpoint', server.endpoint])).code, 0)
  const conflict = await sync([], environment)
  assert.equal(conflict.code, 1)
  assert.match(conflict.stderr, new RegExp(`conflict: ${KEY}`))
  assert.equal((await sync(['--replace'], environment)).code, 0)
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('a conflict names the file, the reason and the option that replaces it', async (t) => {
  const [lake, place] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeTree(lake, { [KEY]: 'ours' })
  await writeTree(place, { [KEY]: 'others' })
  const { code, stderr } = await sync(['--lake', lake, '--to', place])
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`conflict: ${KEY}: .*--replace replaces it`))
})

test('a directory in place of its own files is named, with the remedy', async (t) => {
  const [lake, place] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeTree(lake, { [KEY]: 'ours' })
  await mkdir(`${lake}/.sync/outcome.json`, { recursive: true })
  const { code, stderr } = await sync(['--lake', lake, '--to', place])
  assert.equal(code, 1)
  assert.match(
    stderr,
    /sync: the lake .*\.sync\/outcome\.json is a directory where a file must be; remove or rename it/,
  )
})

test('raw segments are pushed unless --no-raw is given, and pulled only with --raw', async (t) => {
  const [lake, place] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeSegment(lake, { recorder: 'import', date: '2026-06-24', hour: 3, fromMinute: 1, toMinute: 4 })
  await foldHere(lake, ['2026-06-24'])
  const run = async (...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await sync(args)
    assert.equal(code, 0, stderr)
  }
  await run('--lake', lake, '--to', place, '--no-raw')
  const derived = Object.keys(await readWhole(place))
  assert.deepEqual(
    derived.filter((key) => key.startsWith('raw/')),
    [],
  )
  await run('--lake', lake, '--to', place)
  assert.deepEqual(await readWhole(place), await readWhole(lake))
  const copies = [await temporaryDirectory(t), await temporaryDirectory(t)] as const
  await run('--lake', copies[0], '--from', place)
  assert.deepEqual(Object.keys(await readWhole(copies[0])), derived)
  // --replace does not help here.
  await writeTree(copies[0], { [derived.find((key) => key.startsWith('lob/'))!]: 'other' })
  const held = await sync(['--lake', copies[0], '--to', place, '--replace'])
  assert.equal(held.code, 1)
  assert.match(held.stderr, /the lake holds none; pull them with `sync --from <place> --raw`\n/)
  await run('--lake', copies[1], '--from', place, '--raw')
  assert.deepEqual(await readWhole(copies[1]), await readWhole(lake))
  const { code, stderr } = await sync(['--lake', lake, '--to', place, '--raw'])
  assert.equal(code, 2)
  assert.match(stderr, /--raw belongs to --from/)
})

test('a missing side is an error that names its option', async (t) => {
  const directory = await temporaryDirectory(t)
  const [there, nowhere] = [`${directory}/there`, `${directory}/nowhere`]
  await writeTree(there, { [KEY]: 'rows' })
  for (const [args, option] of [
    [['--lake', `${directory}/made`, '--from', nowhere], '--from'],
    [['--lake', there, '--to', nowhere], '--to'],
    [['--lake', nowhere, '--to', there], '--lake'],
  ] as const) {
    const { code, stderr } = await sync(args)
    assert.equal(code, 1)
    assert.equal(stderr, `bookcast sync: ${option}: there is no directory ${nowhere}\n`)
  }
  assert.deepEqual(await readdir(directory), ['there'])
})

test('a side without files of a lake is named', async (t) => {
  const directory = await temporaryDirectory(t)
  const [lake, empty] = [`${directory}/lake`, `${directory}/empty`]
  await writeTree(empty, { 'other.txt': 'text' })
  for (const [args, place, direction] of [
    [['--lake', lake, '--from', empty], empty, 'pull'],
    [['--lake', empty, '--to', empty], empty, 'push'],
  ] as const) {
    const { code, stderr } = await sync(args)
    assert.equal(code, 0)
    assert.match(stderr, new RegExp(`^${place} has nothing to ${direction}: no file of a lake`, 'm'))
  }
})

test('errors for wrong use name the option', async () => {
  for (const [args, message] of [
    [['--from', 'x'], /--lake \(or BOOKCAST_LAKE\) must be given/],
    [['--lake', 'x'], /one of --from <place> and --to <place>/],
    [['--lake', 'x', '--from', 'a', '--to', 'b'], /one of --from/],
    [['--lake', 'x', '--from', 's3://UPPER'], /--from takes s3:\/\/bucket/],
    [['--lake', 'x', '--from', 'a', '--parallel', '0'], /--parallel must be a whole number from 1 to 64/],
    [['--lake', 'x', '--from', 's3://abc', '--s3-endpoint', 'ftp://x'], /--s3-endpoint takes a http:/],
    [
      ['--lake', 'x', '--from', 's3://abc', '--s3-path-style', 'maybe'],
      /--s3-path-style must be one of yes, no/,
    ],
  ] as const) {
    const { code, stderr } = await sync(args)
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
  }
})

test('an operator can decide the seal conflict of a single date', async (t) => {
  const [a, b, place] = [
    await temporaryDirectory(t),
    await temporaryDirectory(t),
    await temporaryDirectory(t),
  ]
  const dates = ['2026-06-23', '2026-06-24']
  const hour = { recorder: 'import', fromMinute: 1, toMinute: 6 }
  for (const [index, lake] of [a, b].entries()) {
    for (const date of dates) await writeSegment(lake, { ...hour, date, hour: 3 + index })
    await foldHere(lake, dates)
  }
  for (const date of dates) await sealDate(a, 'kalshi', date)
  assert.equal((await sync(['--lake', b, '--to', place])).code, 0)
  const before = await readWhole(place)
  const { code, stderr } = await sync(['--lake', a, '--to', place])
  assert.equal(code, 1)
  assert.equal(stderr.match(/was sealed in the lake without segments/g)?.length, 2, stderr)
  const one = await sync(['--lake', a, '--to', place, '--date', dates[0]!, '--replace'])
  assert.equal(one.code, 0, one.stderr)
  const none = await sync(['--lake', a, '--to', place, '--date', '2020-02-29'])
  assert.match(none.stdout, /^0 files, 0 transferred/m)
  assert.match(none.stderr, /has nothing of 2020-02-29 to push/)
  assert.equal(none.code, 1)
  const leftOut = ['--date', dates[0]!, '--sync-from-date', '2026-07-01']
  const chosen = await sync(['--lake', await temporaryDirectory(t), '--from', place, ...leftOut])
  assert.match(chosen.stderr, /has nothing of 2026-06-23 to pull/)
  assert.equal(chosen.code, 1)
  const after = await readWhole(place)
  for (const tree of [before, after])
    for (const key of Object.keys(tree)) if (key.includes(dates[0]!)) delete tree[key]
  assert.deepEqual(after, before)
  assert.deepEqual(await segmentsOnDisk(place, 'kalshi', dates[0]!), [])
  assert.equal((await sync(['--lake', a, '--to', place, '--date', 'yesterday'])).code, 2)
})
