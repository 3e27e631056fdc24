import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../../server/options/usage-error.ts'
import type { CommandIo } from '../../server/commands/command.ts'
import { importCommand } from '../../server/commands/import.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { START_FLAGS } from '../support/start-flags.ts'

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const LINES = [snapshot(1, { yes: [[40, 9]], ts_ms: MS }), delta(2), delta(4)].map((frame) =>
  JSON.stringify(frame),
)
const TEXT = LINES.map((line) => `${line}\n`).join('')

class Output extends Writable {
  text = ''
  readonly isTTY: boolean

  constructor(isTTY: boolean) {
    super()
    this.isTTY = isTTY
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += piece.toString()
    done()
  }
}

interface Run {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function run(
  args: readonly string[],
  { env = {}, input = '', isTTY = false }: { env?: NodeJS.ProcessEnv; input?: string; isTTY?: boolean } = {},
): Promise<Run> {
  const [stdout, stderr] = [new Output(isTTY), new Output(isTTY)]
  const stdin = Readable.from([Buffer.from(input)])
  // Process streams have more members than a command may use.
  const io = { env, stdin, stdout, stderr, signal: new AbortController().signal } as unknown as CommandIo
  const code = await importCommand(args, io)
  return { code, out: stdout.text, err: stderr.text }
}

test('imports files and reports the results', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'recording.ndjson')
  await writeFile(path, TEXT)
  const { code, out, err } = await run(['--source', 'kalshi', '--lake', join(directory, 'lake'), path])
  assert.equal(code, 0)
  const lines = out.trimEnd().split('\n')
  assert.equal(
    lines[0],
    'written lob/source=kalshi/series=KXHIGHNY/date=2026-06-24/lob.parquet: 5 rows, 1 market, 1 gap, ' +
      '2026-06-24T15:49:55.000Z to 2026-06-24T15:49:55.004Z',
  )
  assert.match(lines[1]!, /^3 messages, 4 book events in \d+\.\d s \([\d,]+ messages?\/s\)$/)
  assert.deepEqual(lines.slice(2), [
    '1 raw segment added',
    '1 gap: sequence gap',
    'known for 50.00% of the covered time (0.00% of the day), over 1 market day',
    '  KXHIGHNY-26JUN24-T82 2026-06-24: 50.00% known, 1 time unknown: sequence gap, 1 change without a book',
  ])
  const steps = [
    `reading ${path} (0.0 MiB)`,
    'folding 2026-06-24 (1 raw segment)',
    'writing KXHIGHNY 2026-06-24',
  ]
  assert.equal(err, `${steps.join('\n')}\n`)
})

test('shows a progress bar on a terminal', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'recording.ndjson')
  await writeFile(path, TEXT)
  const { code, err } = await run(['--source=kalshi', `--lake=${directory}/lake`, path], { isTTY: true })
  assert.equal(code, 0)
  assert.match(err, /reading .* \[.*\] 0%/)
})

test('every option can be set in the environment, and the command line wins', async (t) => {
  const lake = await temporaryDirectory(t)
  const env = {
    BOOKCAST_LAKE: lake,
    BOOKCAST_IMPORT_SOURCE: 'kalshi',
    BOOKCAST_IMPORT_SERIES: 'mine',
    BOOKCAST_SKIP_BAD: '1',
    BOOKCAST_REPLACE: 'true',
    BOOKCAST_USE_YES_PRICE: 'false',
  }
  const first = await run([], { env, input: `${TEXT}bad\n` })
  assert.equal(first.code, 0, first.err)
  assert.match(first.out, /series=mine/)
  assert.match(first.out, /1 bad line of stdin skipped, the first of them:\n  stdin:4: neither JSON/)
  // A date is replaced as a whole: otherwise the files of another series would remain without messages.
  const second = await run(['--series', 'other', '-'], { env, input: LINES[0]! })
  assert.equal(second.code, 1)
  assert.match(second.err, /has order-book files of mine, of which the recording holds no messages/)
  const third = await run([], { env, input: LINES[0]! })
  assert.match(third.out, /replaced .*series=mine/)
  // Without --replace messages are added, and known messages change nothing.
  const merging = { ...env, BOOKCAST_REPLACE: '' }
  const fourth = await run([], { env: merging, input: TEXT })
  assert.match(fourth.out, /replaced .*series=mine.* 5 rows/)
  const fifth = await run([], { env: merging, input: LINES[0]! })
  assert.match(fifth.out, /unchanged .*series=mine.* 5 rows/)
})

test('reports what is wrong with the input and exits with 1', async (t) => {
  const lake = await temporaryDirectory(t)
  const args = ['--source', 'kalshi', '--lake', lake]
  const cases: [string[], string, RegExp][] = [
    [
      args,
      `${TEXT}bad\n`,
      /stdin:4: neither JSON nor a time followed by JSON\n[^]*\(nothing was written to the lake\)/,
    ],
    [[...args, join(lake, 'none')], '', /cannot read .*none/],
    [args, '', /the input has no message of the exchange/],
    [args, '{"type":"trade","msg":{}}', /no message of the recording carries a time/],
  ]
  for (const [list, input, message] of cases) {
    const { code, err } = await run(list, { input })
    assert.equal(code, 1, err)
    assert.match(err, message)
  }
  assert.deepEqual(await entriesBelow(lake), [])
})

test('disconnects without any order-book message are kept', async (t) => {
  const lake = await temporaryDirectory(t)
  const words = [70, 80].map(
    (second) => `${JSON.stringify({ recv_ts: MS + second * 1000, msg: { type: 'disconnect' } })}\n`,
  )
  for (const input of [words.join(''), words[0]!]) {
    const { code, out, err } = await run(['--source', 'kalshi', '--lake', lake], { input })
    assert.equal(code, 0, err)
    assert.match(out, /\n1 raw segment added\nno order-book file: /)
  }
})

test('errors for wrong use name the option', async () => {
  const cases: [string[], NodeJS.ProcessEnv, RegExp][] = [
    [[], {}, /--source \(or BOOKCAST_IMPORT_SOURCE\) must be given/],
    [['--source', 'nyse', '--lake', 'x'], {}, /--source must be one of kalshi, polymarket, not "nyse"/],
    [['--source', 'kalshi'], {}, /--lake \(or BOOKCAST_LAKE\) must be given/],
    [['--source', 'kalshi', '--lake', ''], {}, /--lake \(or BOOKCAST_LAKE\) must be given/],
    [['--source', 'kalshi', '--lake', 'x', '--series', '../up'], {}, /--series takes/],
    [['--sauce', 'kalshi'], {}, /--sauce/],
    [
      ['--source', 'kalshi', '--lake', 'x'],
      { BOOKCAST_SKIP_BAD: 'maybe' },
      /BOOKCAST_SKIP_BAD takes .* not "maybe"/,
    ],
  ]
  for (const [args, env, message] of cases) {
    await assert.rejects(run(args, { env }), (error) => {
      assert.ok(error instanceof UsageError)
      assert.match(error.message, message)
      return true
    })
  }
})

test('an incomplete last line is refused with the remedy', async (t) => {
  const directory = await temporaryDirectory(t)
  const lake = join(directory, 'lake')
  const to = ['--source', 'kalshi', '--lake', lake]
  const half = await run(to, { input: TEXT.slice(0, -10) })
  assert.equal(half.code, 1)
  assert.match(half.err, /stdin:3: not valid JSON[^]*\n\(--skip-bad imports the lines that can be read/)
  assert.equal((await run([...to, '--skip-bad'], { input: TEXT.slice(0, -10) })).code, 0)
})

test('--help names every option, its variable and every key of a wrapper', async () => {
  const { code, out } = await run(['--help'])
  assert.equal(code, 0)
  const words = [
    '--source',
    '--lake',
    '--series',
    '--skip-bad',
    '--replace',
    '--no-keep-raw',
    'BOOKCAST_NO_KEEP_RAW',
    '--use-yes-price',
    '--sequence',
    '--report',
    'BOOKCAST_SEQUENCE',
    'BOOKCAST_IMPORT_REPORT',
    'BOOKCAST_LAKE',
    'BOOKCAST_IMPORT_SOURCE',
    'BOOKCAST_IMPORT_SERIES',
    'BOOKCAST_SKIP_BAD',
    'BOOKCAST_REPLACE',
    'BOOKCAST_USE_YES_PRICE',
    'frame',
    'data',
    'message',
    'raw',
    'msg',
    'recv_ts',
    'received_at',
    '_received_at',
    'recv_time',
    'ts_recv',
    'local_timestamp',
    'timestamp',
    'disconnect',
  ]
  for (const word of words) assert.ok(out.includes(word), word)
  assert.ok(out.split('\n').every((line) => line.length <= 120))
})

test('does not load the object storage client, which takes longer than a short import', async () => {
  const preload =
    "import { createRequire } from 'node:module'; process.on('exit', () => " +
    "console.log(Object.keys(createRequire('/').cache).some((path) => path.includes('@aws-sdk'))))"
  const url = `data:text/javascript,${encodeURIComponent(preload)}`
  const isLoaded = (command: string): string =>
    execFileSync(process.execPath, [...START_FLAGS, '--import', url, MAIN, command, '--help'], {
      encoding: 'utf8',
    })
  assert.match(isLoaded('import'), /\nfalse\n$/)
  assert.match(isLoaded('sync'), /\ntrue\n$/)
})

test('SIGINT while it waits for input ends the process with nothing written', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const child = spawn(
    process.execPath,
    [...START_FLAGS, MAIN, 'import', '--source', 'kalshi', '--lake', lake],
    {
      stdio: ['pipe', 'ignore', 'pipe'],
    },
  )
  t.after(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const errors = new PassThrough()
  child.stderr.pipe(errors)
  let text = ''
  child.stdin.write(TEXT)
  for await (const piece of errors) {
    text += String(piece)
    if (text.endsWith('reading stdin\n')) child.kill('SIGINT')
  }
  const [code] = await exited
  assert.equal(code, 1, text)
  assert.match(text, /interrupted; nothing was written to the lake/)
  assert.deepEqual(await entriesBelow(lake), [])
})

test('an import that fails while publishing reports what is written, and completes when run again', async (t) => {
  const directory = await temporaryDirectory(t)
  const [lake, clean] = [join(directory, 'lake'), join(directory, 'clean')]
  await run(['--source', 'kalshi', '--lake', clean], { input: TEXT })
  // A file cannot be renamed to a non-empty directory.
  const inTheWay = join(lake, 'raw/source=kalshi/date=2026-06-24/fold.json.gz')
  await mkdir(join(inTheWay, 'something'), { recursive: true })
  const broken = await run(['--source', 'kalshi', '--lake', lake], { input: TEXT })
  assert.equal(broken.code, 1)
  assert.match(
    broken.err,
    /cannot be written: .*\n\(lob\/source=kalshi\/series=KXHIGHNY\/date=2026-06-24\/lob\.parquet was written before that; run the same import again to complete it\)\n$/,
  )
  await rm(inTheWay, { recursive: true })
  assert.deepEqual(
    (await entriesBelow(lake)).filter((name) => name.endsWith('.tmp')),
    [],
  )
  const again = await run(['--source', 'kalshi', '--lake', lake], { input: TEXT })
  assert.match(again.out, /^unchanged /)
  const names = [
    'lob/source=kalshi/series=KXHIGHNY/date=2026-06-24/lob.parquet',
    'raw/source=kalshi/date=2026-06-24/manifest.json',
  ]
  for (const name of names) {
    const [own, whole] = [lake, clean].map((root) => readFileSync(join(root, name)))
    assert.deepEqual(own, whole, name)
  }
})

test('on a nearly full disk an import writes everything or nothing', async (t) => {
  await onSmallDisk(t, 1, async (disk) => {
    const lake = join(disk.path, 'lake')
    let failures = 0
    for (let pages = 0, code = 1; code !== 0; pages++) {
      assert.ok(pages < 40, 'a few pages are enough')
      await disk.fill()
      const filler = join(disk.path, '.filler')
      await truncate(filler, (await stat(filler)).size - pages * 4_096)
      const ran = await run(['--source', 'kalshi', '--lake', lake], { input: TEXT })
      code = ran.code
      await disk.free()
      if (code === 0) continue
      failures++
      assert.match(ran.err, /its disk is full; .*\n\(nothing was written to the lake\)\n$/)
      assert.deepEqual(await entriesBelow(lake), [], `${pages} pages`)
    }
    assert.ok(failures >= 2, `${failures}`)
    assert.deepEqual(
      (await entriesBelow(lake)).filter((name) => /\.\w+$/.test(name)).map((name) => extname(name)),
      ['.parquet', '.gz', '.gz', '.json'],
    )
  })
})

test('the temporary file of an import does not fill a disk that has room for the result', async (t) => {
  await onSmallDisk(t, 4, async (disk) => {
    const lake = join(disk.path, 'lake')
    const frames = [snapshot(1, { yes: [[40, 9]], ts_ms: MS })]
    for (let seq = 2; seq <= 80_000; seq++) frames.push(delta(seq, { ts_ms: MS + seq * 10 }))
    const input = frames.map((frame) => `${JSON.stringify(frame)}\n`).join('')
    const { code, err } = await run(['--source', 'kalshi', '--lake', lake], { input })
    assert.equal(code, 0, err)
  })
})

test('sequence numbers that another file has are not reported as missing', async (t) => {
  const directory = await temporaryDirectory(t)
  const frames = [snapshot(1, { yes: [[40, 9]], ts_ms: MS })]
  for (let seq = 2; seq <= 40; seq++) frames.push(delta(seq, seq % 2 === 0 ? {} : { market_ticker: B }))
  const paths = [T, B].map((market) => join(directory, market))
  for (const path of paths) {
    const lines = frames.map((frame) => JSON.stringify(frame)).filter((text) => text.includes(basename(path)))
    await writeFile(path, lines.join('\n'))
  }
  const { out } = await run(['--source', 'kalshi', '--lake', join(directory, 'lake'), ...paths])
  assert.match(out, /KXHIGHNY/)
  assert.doesNotMatch(out, /sequence gap|numbers are missing/)
})

test('a part of a connection is detected by its holes, and its books are known with --sequence per-market', async (t) => {
  const lake = await temporaryDirectory(t)
  const frames = [snapshot(1, { yes: [[40, 9]], ts_ms: MS }), delta(5), delta(9), delta(14)]
  const input = frames.map((frame) => JSON.stringify(frame)).join('\n')
  const strict = await run(['--source', 'kalshi', '--lake', join(lake, 'a')], { input })
  assert.match(strict.out, /10 of 14 sequence numbers are missing, in 3 holes: .*--sequence per-market/)
  assert.match(strict.out, /warning: less than half of the covered time is known on 1 market day/)
  const env = { BOOKCAST_SEQUENCE: 'per-market' }
  const filtered = await run(['--source', 'kalshi', '--lake', join(lake, 'b')], { env, input })
  assert.match(filtered.out, /known for 100\.00% of the covered time/)
  assert.doesNotMatch(filtered.out, /sequence numbers are missing/)
  assert.match(filtered.out, /with --sequence per-market, lost messages go unnoticed/)
  const args = ['--source', 'kalshi', '--lake', join(lake, 'd'), '--sequence', 'ignore']
  const unnumbered = await run(args, { input })
  assert.match(unnumbered.out, /with --sequence ignore, lost messages and unmarked reconnects go unnoticed/)
  const bookless = await run(['--source', 'kalshi', '--lake', join(lake, 'c')], { input: LINES[1]! })
  assert.match(bookless.out, /1 change, but no snapshot: the books stay unknown/)
  await assert.rejects(
    run(['--source', 'kalshi', '--lake', lake, '--sequence', 'lax']),
    /--sequence must be one of strict/,
  )
})
