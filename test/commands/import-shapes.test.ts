// The shapes of users' recordings, imported by the program itself: each wrapper and each compression gives the same bytes from
// a file, from stdin and as gzip. Input that cannot be read is refused with file, line and remedy.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { NS_PER_DAY } from '../../shared/utc-date.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { runs } from '../support/effort.ts'
import { MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { readRows } from '../support/lob-rows.ts'
import { bookcast, type Ended, processEnd, type ProgramSurroundings } from '../support/program.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { lakeHashes } from '../import/pieces/lake-reader.ts'

const NOBODY = 65_534

const IMPORT = ['import', '--source', 'kalshi'] as const

function importing(args: readonly string[], surroundings: ProgramSurroundings = {}): Promise<Ended> {
  return bookcast([...IMPORT, ...args], surroundings)
}

const FRAMES = [snapshot(1, { yes: [[40, 9]] }), delta(2), delta(3, { side: 'no' }), delta(4)]
const ns = (seq: number): string => `${MS + seq}000123`
const iso = (seq: number): string => `${new Date(MS + seq).toISOString().slice(0, -1)}000123Z`

/** Lines of the same four messages, received at the same nanosecond, in each shape. */
const WRAPPERS: readonly (readonly [name: string, line: (frame: object, seq: number) => string])[] = [
  ['recv_ts as a number', (frame, seq) => `{"recv_ts":${ns(seq)},"msg":${JSON.stringify(frame)}}`],
  ['ts and msg', (frame, seq) => `{"ts":${ns(seq)},"msg":${JSON.stringify(frame)}}`],
  ['time and data', (frame, seq) => JSON.stringify({ time: iso(seq), data: frame })],
  ['t and frame', (frame, seq) => JSON.stringify({ t: ns(seq), frame })],
  ['timestamp and message', (frame, seq) => JSON.stringify({ timestamp: iso(seq), message: frame })],
  [
    'received_at and raw text',
    (frame, seq) => JSON.stringify({ received_at: iso(seq), raw: JSON.stringify(frame) }),
  ],
  ['a list of time and frame', (frame, seq) => `[${ns(seq)},${JSON.stringify(frame)}]`],
  ['a time before the frame', (frame, seq) => `${ns(seq)}\t${JSON.stringify(frame)}`],
  ['a time within the frame', (frame, seq) => JSON.stringify({ ...frame, _received_at: iso(seq) })],
]

/** Number of wrappers that are also read in one of the three other ways. */
const SECOND_WAYS = runs(3, WRAPPERS.length)

test('each wrapper from a file, from stdin and as gzip gives the same lake', async (t) => {
  const directory = await temporaryDirectory(t)
  let expected: Map<string, string> | undefined
  for (const [index, [name, line]] of WRAPPERS.entries()) {
    const text = Buffer.from(FRAMES.map((frame, at) => `${line(frame, at + 1)}\n`).join(''))
    const path = join(directory, `${index}.ndjson`)
    await writeFile(path, text)
    await writeFile(`${path}.gz`, gzipSync(text))
    const ways: [string[], Buffer?][] = [[[path]], [[`${path}.gz`]], [[], text], [['-'], gzipSync(text)]]
    // Every wrapper is read from a file; the other ways do not depend on the wrapper, so they take turns.
    const tried = index < SECOND_WAYS ? [ways[0]!, ways[1 + (index % 3)]!] : [ways[0]!]
    for (const [way, [args, input]] of tried.entries()) {
      const lake = join(directory, `lake-${index}-${way}`)
      const run = await importing(['--lake', lake, ...args], input === undefined ? {} : { input })
      assert.equal(run.code, 0, `${name}: ${run.stderr}`)
      const hashes = await lakeHashes(lake)
      assert.equal(hashes.size, 1)
      assert.deepEqual(
        hashes,
        (expected ??= hashes),
        `${name}, ${way === 0 ? 'file' : args.join(' ') || 'stdin'}`,
      )
    }
  }
  const [row] = await readRows(await fileIn(join(directory, 'lake-0-0')))
  assert.equal(row!.recv_ts, BigInt(ns(1)))
})

test('zstd is read like plain text, where the compressor is installed', async (t) => {
  const text = Buffer.from(FRAMES.map((frame, at) => `${WRAPPERS[0]![1](frame, at + 1)}\n`).join(''))
  const zstd = spawnSync('zstd', ['-c'], { input: text })
  if (zstd.error !== undefined) {
    t.skip('zstd is not installed')
    return
  }
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'recording')
  await writeFile(path, zstd.stdout)
  const lakes = ['plain', 'file', 'stdin'].map((name) => join(directory, name))
  const results = [
    await importing(['--lake', lakes[0]!], { input: text }),
    await importing(['--lake', lakes[1]!, path]),
    await importing(['--lake', lakes[2]!], { input: zstd.stdout }),
  ]
  for (const { code, stderr } of results) assert.equal(code, 0, stderr)
  const [plain, ...others] = await Promise.all(lakes.map(lakeHashes))
  for (const other of others) assert.deepEqual(other, plain)
})

test('input that cannot be read is refused with its file and line, and with the remedy', async (t) => {
  const directory = await temporaryDirectory(t)
  const lake = join(directory, 'lake')
  const good = `${WRAPPERS[0]![1](FRAMES[0]!, 1)}\n`
  const frame = JSON.stringify(FRAMES[1])
  const polymarket = {
    event_type: 'book',
    market: '0x1',
    asset_id: '2',
    bids: [],
    asks: [],
    timestamp: `${MS}`,
  }
  const cases: [name: string, content: string | Buffer, message: RegExp][] = [
    [
      'time',
      `${good}{"received_at":"yesterday","msg":${frame}}\n`,
      /:2: received_at is no time: "yesterday"/,
    ],
    [
      'zone',
      `${good}{"time":"2026-06-24T15:49:55","msg":${frame}}\n`,
      /:2: time is no time.*zone is missing: Z/,
    ],
    [
      'counter',
      `${good}[12,${frame}]\n`,
      /:2: the first element is no time: "12" \(it would lie before 2010\)/,
    ],
    [
      'two',
      `${good}{"ts":${ns(2)},"received_at":"2026-06-24T18:00:00Z","msg":${frame}}\n`,
      /:2: received_at and ts are [\d.]+ seconds apart: .*Leave the other out/,
    ],
    ['prefix', `${good}once upon ${frame}\n`, /:2: neither JSON nor a time followed by JSON/],
    [
      'unknown',
      `${good}{"envelope":${frame}}\n`,
      /:2: an object that is neither a frame nor a frame in a known wrapper/,
    ],
    ['json', `${good}{"type":\n`, /:2: not valid JSON/],
    [
      'other',
      `${JSON.stringify(polymarket)}\n`,
      /messages of polymarket, not of kalshi; .*--source polymarket/,
    ],
    ['bzip2', Buffer.from('BZh91AY&SY'), /bzip2 is not supported; .*bzip2 -dc FILE \| bookcast import … -/],
    ['xz', Buffer.from('fd377a585a00', 'hex'), /xz is not supported; .*xz -dc FILE/],
    ['zip', Buffer.from('504b0304', 'hex'), /zip is not supported; .*unzip -p FILE/],
    ['cut', gzipSync(good.repeat(9)).subarray(0, 60), /gzip data is damaged or ends too early/],
  ]
  for (const [index, [name, content, message]] of cases.entries()) {
    const path = join(directory, `${name}.ndjson`)
    await writeFile(path, content)
    const isFile = index % 2 === 0
    const run = isFile
      ? await importing(['--lake', lake, path])
      : await importing(['--lake', lake], { input: Buffer.from(content) })
    assert.equal(run.code, 1, `${name}: ${run.stderr}`)
    assert.match(run.stderr, message)
    assert.ok(run.stderr.includes(`bookcast import: ${isFile ? path : 'stdin'}:`), run.stderr)
    assert.match(run.stderr, /\(nothing was written to the lake\)\n$/)
  }
  assert.deepEqual(await entriesBelow(lake), [])
})

test('a name of 200 letters or an invalid name is refused before anything is read', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  for (const [series, problem] of [
    ['s'.repeat(200), /--series takes a series' name; "s{200}" .*(?:long|at most|letters|bytes)/],
    ['../up', /--series takes a series' name; "\.\.\/up"/],
  ] as const) {
    const { code, stderr } = await importing(['--lake', lake, '--series', series, '/none'])
    assert.equal(code, 2, stderr)
    assert.match(stderr, problem)
  }
})

test('a lake that cannot be written is reported with the reason', async (t) => {
  const directory = await temporaryDirectory(t)
  const input = Buffer.from(`${WRAPPERS[0]![1](FRAMES[0]!, 1)}\n`)
  const file = join(directory, 'file')
  await writeFile(file, '')
  const onFile = await importing(['--lake', file], { input })
  assert.equal(onFile.code, 1)
  assert.match(onFile.stderr, /the lake .*file cannot be written: .*\n\(nothing was written to the lake\)\n$/)
  await t.test('the directory belongs to another user', async (part) => {
    const lake = join(directory, 'owned')
    await mkdir(lake)
    await chmod(lake, 0o555)
    await chmod(directory, 0o755)
    // Permissions do not apply to root, so root runs the import as another user.
    const uid = process.getuid?.() === 0 ? NOBODY : undefined
    if (
      uid !== undefined &&
      spawnSync(process.execPath, [...PROGRAM_ARGUMENTS, '--version'], { uid, gid: uid }).status !== 0
    ) {
      part.skip('another user cannot run the program here')
      return
    }
    const identity = uid === undefined ? {} : { uid, gid: uid }
    const program = [process.execPath, ...PROGRAM_ARGUMENTS, ...IMPORT, '--lake', lake]
    const { code, stderr } = await processEnd(program, { input }, identity)
    assert.equal(code, 1, stderr)
    assert.match(stderr, /the lake .*owned cannot be written: this user may not; .* \(EACCES at .*owned/)
    assert.deepEqual(await readdir(lake), [])
  })
  await t.test('it is mounted read-only', async (part) => {
    const lake = join(directory, 'mounted')
    await mkdir(lake)
    const script = 'mount -t tmpfs -o ro tmpfs "$0" && exec "$@"'
    const before = ['unshare', '--map-root-user', '--mount', 'sh', '-c', script, lake]
    if (spawnSync(before[0]!, [...before.slice(1), 'true']).status !== 0) {
      part.skip('nothing can be mounted here')
      return
    }
    const program = [process.execPath, ...PROGRAM_ARGUMENTS, ...IMPORT, '--lake', lake]
    const { code, stderr } = await processEnd([...before, ...program], { input })
    assert.equal(code, 1, stderr)
    assert.match(stderr, /the lake .*mounted cannot be written: its file system is mounted read-only \(EROFS/)
  })
})

test('--report writes JSON that agrees with the lake', async (t) => {
  const directory = await temporaryDirectory(t)
  const [lake, path] = [join(directory, 'lake'), join(directory, 'report.json')]
  const at = (second: number, frame: object): string =>
    `${JSON.stringify({ recv_ts: MS + second * 1000, msg: frame })}\n`
  const seconds = (second: number) => ({ ts_ms: MS + second * 1000 - 20 })
  const text = [
    at(0, delta(1, seconds(0))),
    at(10, snapshot(2, { yes: [[40, 9]] })),
    at(20, delta(3, seconds(20))),
    at(20, delta(3, seconds(20))),
    at(40, delta(5, seconds(40))),
    at(50, snapshot(6, { yes: [[41, 9]] })),
    at(60, delta(7, { ts_ms: Date.UTC(2099, 0, 1) })),
    at(100, delta(8, seconds(100))),
  ].join('')
  const { code, stdout, stderr } = await importing(['--lake', lake, '--report', path], {
    input: Buffer.from(text),
  })
  assert.equal(code, 0, stderr)
  const report = JSON.parse(await readFile(path, 'utf8'))
  const [market] = report.markets
  const [day] = market.dates
  assert.deepEqual(
    [report.messages, report.repeated_messages, report.corrected_times, report.missing_numbers],
    [8, 1, 1, 1],
  )
  assert.deepEqual([market.series, market.market_id], ['KXHIGHNY', T])
  assert.deepEqual([day.resets, day.changes_without_book], [1, 2])
  assert.deepEqual(
    day.gaps.map(({ cause }: { cause: string }) => cause),
    ['no snapshot yet', 'sequence gap'],
  )
  // Counted from the rows: known from each `clear` to the next `gap` or the end of the coverage.
  const rows = await readRows(await fileIn(lake))
  const end = BigInt(Date.parse(report.files[0].covers_to)) * 1_000_000n
  let known = 0n
  let since: bigint | undefined
  for (const { ts, event } of rows) {
    if (event === 0) since ??= ts
    if (event !== 3 || since === undefined) continue
    known += ts - since
    since = undefined
  }
  if (since !== undefined) known += end + 1n - since
  assert.equal(day.known_ns, Number(known))
  const share = Number(known) / Number(NS_PER_DAY)
  assert.ok(Math.abs(day.known_share_of_day - share) < 1e-6, `${day.known_share_of_day} ${share}`)
  assert.match(
    stdout,
    new RegExp(`known for ${(report.known_share_of_covered * 100).toFixed(2)}% of the covered time`),
  )
  const wrong = await importing(['--lake', lake, '--report', join(directory, 'none/report.json'), '/none'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /--report .*: there is no directory .*none/)
})

/** The one order-book file of a lake. */
async function fileIn(lake: string): Promise<string> {
  const names = (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet'))
  assert.equal(names.length, 1)
  return join(lake, names[0]!)
}
