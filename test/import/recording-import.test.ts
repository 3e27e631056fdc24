import assert from 'node:assert/strict'
import { existsSync, renameSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ClosedDateError } from '../../server/import/date-rules.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { readManifest, segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { EVENT_CLEAR } from '../../shared/lob-v1.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { readRows } from '../support/lob-rows.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeSegment } from '../sync/raw-lakes.ts'

// A connection of three hours, cut into three parts in the order of time.
function recordedLines(): string[] {
  const lines = [
    snapshot(1, { yes: [[40, 9]], ts_ms: MS }),
    snapshot(2, { market_ticker: 'KXHIGHCHI-26JUN24-T90' }),
  ]
  for (let seq = 3; seq < 300; seq++) {
    lines.push(delta(seq, { price_dollars: `0.${10 + (seq % 80)}`, ts_ms: MS + seq * 36_000 }))
  }
  return lines.map((line) => JSON.stringify(line))
}

async function bytesOf(lake: string): Promise<Map<string, string>> {
  const names = (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet'))
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(lake, name), 'hex')] as const)),
  )
}

test('plain text, gzip, stdin and files in any order give identical bytes', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines = recordedLines()
  const text = (from: number, to: number): string =>
    lines
      .slice(from, to)
      .map((line) => `${line}\n`)
      .join('')
  const file = async (name: string, content: string | Buffer): Promise<string> => {
    const path = join(directory, name)
    await writeFile(path, content)
    return path
  }
  const whole = await file('whole.ndjson', text(0, 999))
  const zipped = await file('whole.ndjson.gz', gzipSync(text(0, 999)))
  const [a, b, c] = [
    await file('z.ndjson', text(0, 100)),
    await file('m.gz', Buffer.concat([gzipSync(text(100, 150)), gzipSync(text(150, 200))])),
    await file('a.ndjson', text(200, 999)),
  ]
  const inputs = [
    { paths: [whole] },
    { paths: [zipped] },
    { lines },
    { paths: [a, b, c] },
    { paths: [c, a, b, a] },
    { paths: ['-', a, b], lines: lines.slice(200) },
  ]
  const results: Map<string, string>[] = []
  for (const [index, input] of inputs.entries()) {
    const lake = join(directory, `lake-${index}`)
    const { files, input: read } = await runImport(lake, 'kalshi', input)
    assert.deepEqual(
      files.map(({ series, date, gaps }) => [series, date, gaps]),
      [
        ['KXHIGHCHI', '2026-06-24', 0],
        ['KXHIGHNY', '2026-06-24', 0],
      ],
    )
    assert.ok(read.messages >= 299)
    results.push(await bytesOf(lake))
  }
  assert.equal(results[0]!.size, 2)
  for (const result of results) assert.deepEqual(result, results[0])
})

test('a bad line stops the import with its file and number, and nothing is written', async (t) => {
  const directory = await temporaryDirectory(t)
  const lake = join(directory, 'lake')
  const path = join(directory, 'recording.ndjson')
  const good = recordedLines().slice(0, 5)
  const cases: [string | Buffer, RegExp][] = [
    ['{"type":', /recording\.ndjson:7: not valid JSON/],
    [JSON.stringify(delta(6, { side: 'x' })), /recording\.ndjson:7: side is neither/],
    [Buffer.from([0xff]), /recording\.ndjson:7: not valid UTF-8/],
  ]
  for (const [bad, message] of cases) {
    await writeFile(
      path,
      Buffer.concat([Buffer.from(`${good.join('\n')}\n\n`), Buffer.from(bad), Buffer.from('\n')]),
    )
    await assert.rejects(runImport(lake, 'kalshi', { paths: [path] }), message)
    assert.deepEqual(await entriesBelow(lake), [])
  }
  await assert.rejects(runImport(lake, 'kalshi', { lines: ['?'] }), /stdin:1: /)
  await assert.rejects(
    runImport(lake, 'kalshi', { paths: [join(directory, 'none')] }),
    /cannot read .*none.*ENOENT/,
  )
  await assert.rejects(runImport(lake, 'kalshi', { paths: [directory] }), /cannot read .*: it is a directory/)
})

test('skipped bad lines are counted and shown, and cause sequence gaps', async (t) => {
  const lake = await temporaryDirectory(t)
  // Both series continue after the loss, so that both have unknown time.
  const last = snapshot(31, { market_ticker: 'KXHIGHCHI-26JUN24-T90', ts_ms: MS + 31 * 36_000 })
  const lines = [...recordedLines().slice(0, 30), JSON.stringify(last)]
  const broken = lines.map((line, index) => (index >= 10 && index < 18 ? line.slice(0, -1) : line))
  const { files, input, tally, badLines } = await runImport(
    lake,
    'kalshi',
    { lines: broken },
    { skipBad: true },
  )
  assert.equal(input.badLines, 8)
  assert.equal(badLines.length, 1)
  assert.deepEqual([badLines[0]!.input, badLines[0]!.count, badLines[0]!.first.length], ['stdin', 8, 5])
  assert.match(badLines[0]!.first[0]!, /^stdin:11: not valid JSON/)
  assert.deepEqual([...tally.gaps], [['sequence gap', 2]])
  assert.deepEqual(
    files.map((file) => file.gaps),
    [1, 1],
  )

  const cut = join(await temporaryDirectory(t), 'cut.gz')
  await writeFile(cut, gzipSync(`${lines.join('\n')}\n`).subarray(0, -20))
  const again = await runImport(join(lake, 'cut'), 'kalshi', { paths: [cut] }, { skipBad: true })
  assert.match(again.badLines[0]!.first[0]!, /gzip data is damaged or ends too early/)
  await assert.rejects(
    runImport(join(lake, 'cut2'), 'kalshi', { paths: [cut] }),
    /cut\.gz:\d+: the gzip data/,
  )
})

test('an import that is interrupted while it reads or writes leaves no files', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const bytes = Buffer.from(
    recordedLines()
      .map((line) => `${line}\n`)
      .join(''),
  )
  const reading = new AbortController()
  // When it waits for more input, it has already begun a segment.
  const stdin = new Readable({ read: () => undefined })
  stdin.push(bytes)
  const seen: Promise<string[]>[] = []
  let bytesRead = 0
  const whileReading = runImport(
    lake,
    'kalshi',
    {},
    {
      stdin,
      signal: reading.signal,
      progress: {
        onBytes: (count) => {
          bytesRead += count
          if (bytesRead < bytes.length) return
          setTimeout(() => {
            seen.push(entriesBelow(lake))
            reading.abort(new Error('interrupted'))
          }, 100)
        },
      },
    },
  )
  await assert.rejects(whileReading, /interrupted/)
  assert.ok((await seen[0]!).some((name) => name.endsWith('.tmp')))
  assert.deepEqual(await entriesBelow(lake), [])

  const writing = new AbortController()
  const whileWriting = runImport(
    lake,
    'kalshi',
    { lines: recordedLines() },
    {
      signal: writing.signal,
      progress: { onWrite: () => writing.abort(new Error('interrupted')) },
    },
  )
  await assert.rejects(whileWriting, /interrupted/)
  assert.deepEqual(await entriesBelow(lake), [])
})

test('an existing date is merged with, found unchanged or replaced', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = recordedLines()
  await runImport(lake, 'kalshi', { lines })
  const whole = await bytesOf(lake)
  for (const part of [lines, lines.slice(0, 50), lines.slice(200)]) {
    const again = await runImport(lake, 'kalshi', { lines: part })
    assert.ok(again.files.every((file) => file.status === 'unchanged'))
    assert.deepEqual(await bytesOf(lake), whole)
  }
  const replaced = await runImport(lake, 'kalshi', { lines: lines.slice(0, 50) }, { replace: true })
  assert.deepEqual(
    replaced.files.map((file) => file.status),
    ['replaced', 'replaced'],
  )
  assert.notDeepEqual(await bytesOf(lake), whole)
  await runImport(lake, 'kalshi', { lines: lines.slice(40) })
  assert.deepEqual(await bytesOf(lake), whole)
})

test('a date of version 0.1, without raw segments, is refused by name, or replaced', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = recordedLines()
  const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
  const ts = BigInt(MS) * 1_000_000n
  const told = { marketId: T, ts, recvTs: ts, seq: 1n, event: EVENT_CLEAR, side: 0, price: 0, qty: 0 }
  writer.append('KXHIGHNY', told)
  await writer.finish()
  const before = await entriesBelow(lake)
  const bytes = await bytesOf(lake)
  await assert.rejects(runImport(lake, 'kalshi', { lines }), (error) => {
    assert.ok(error instanceof ClosedDateError)
    assert.match(
      error.message,
      /^kalshi 2026-06-24 cannot be added to: lob\/\S+NY\/date=2026-06-24\/lob\.parquet was written without raw .*--replace\.$/,
    )
    return true
  })
  assert.deepEqual(await entriesBelow(lake), before)
  assert.deepEqual(await bytesOf(lake), bytes)
  const { files } = await runImport(lake, 'kalshi', { lines }, { replace: true })
  assert.deepEqual(
    files.map(({ series, status }) => [series, status]),
    [
      ['KXHIGHCHI', 'written'],
      ['KXHIGHNY', 'replaced'],
    ],
  )
})

test('rows of a market never go back in time, and are in the requested series', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = [snapshot(1, { ts_ms: MS }), delta(2, { ts_ms: MS - 7 }), delta(3, { ts_ms: MS - 5 })]
  const { files } = await runImport(
    lake,
    'kalshi',
    { lines: lines.map((line) => JSON.stringify(line)) },
    { series: 'mine' },
  )
  assert.equal(files[0]!.series, 'mine')
  const rows = await readRows(files[0]!.path)
  assert.deepEqual(
    rows.map((row) => [row.market_id, row.ts]),
    [
      [T, BigInt(MS) * 1_000_000n],
      [T, BigInt(MS) * 1_000_000n],
      [T, BigInt(MS) * 1_000_000n],
    ],
  )
})

test('messages without an order book are kept as raw, and give no order-book file', async (t) => {
  const lake = await temporaryDirectory(t)
  const timeless = ['{"type":"ticker","msg":{}}', 'PONG']
  await assert.rejects(
    runImport(lake, 'kalshi', { lines: timeless }),
    /stdin: no message of the recording carries a time/,
  )
  assert.deepEqual(await entriesBelow(lake), [])
  const ticker = '{"type":"ticker","msg":{"ts":1782316195}}'
  const { files, input, segments } = await runImport(lake, 'kalshi', { lines: [ticker] })
  assert.deepEqual([files, input.messages, segments], [[], 1, { added: 1, present: 0 }])
  assert.ok((await entriesBelow(lake)).every((name) => !name.endsWith('.parquet')))
  assert.deepEqual((await runImport(lake, 'kalshi', { lines: [ticker] })).segments, { added: 0, present: 1 })
})

test('a date without its raw segments is sealed, and then accepts only a replacement', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = recordedLines()
  const nowMs = (): number => Date.parse('2026-06-24T23:00:00Z')
  const open = await runImport(lake, 'kalshi', { lines }, { keepsRaw: false, nowMs })
  assert.deepEqual(open.sealed, [], 'today is still open')
  const whole = await bytesOf(lake)
  const closed = await runImport(lake, 'kalshi', { lines: lines.slice(0, 50) }, { keepsRaw: false })
  assert.deepEqual(closed.sealed, ['2026-06-24'])
  assert.deepEqual(await bytesOf(lake), whole)
  const before = await entriesBelow(lake)
  assert.ok(before.every((name) => !name.endsWith('.ndjson.gz')))
  await assert.rejects(
    runImport(lake, 'kalshi', { lines: lines.slice(0, 9) }),
    /^ClosedDateError: kalshi 2026-06-24 is sealed: .* Import everything recorded of the date at once with --replace\.$/,
  )
  assert.deepEqual(await entriesBelow(lake), before)
  await runImport(lake, 'kalshi', { lines }, { replace: true })
  assert.deepEqual(await bytesOf(lake), whole)
  await runImport(lake, 'kalshi', { lines: lines.slice(0, 50) })
  assert.deepEqual(await bytesOf(lake), whole)
})

test('a date with a segment that came after the fold is not sealed', async (t) => {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const slice = { recorder: 'r1', date: '2026-06-24', hour: 23, fromMinute: 50, toMinute: 55 }
  const { name, path } = await writeSegment(other, slice)
  const published = join(rawDateDirectory(lake, 'kalshi', slice.date), name)
  const onWrite = (): void => {
    if (existsSync(path)) renameSync(path, published)
  }
  const lines = recordedLines()
  const options = { keepsRaw: false, progress: { onWrite } }
  const { sealed } = await runImport(lake, 'kalshi', { lines }, options)
  assert.ok(existsSync(published))
  assert.deepEqual(sealed, [])
  const nowMs = (): number => Date.parse('2026-06-25T00:01:00Z')
  const beside = await runImport(lake, 'kalshi', { lines }, { keepsRaw: false, nowMs })
  assert.deepEqual([beside.sealed, beside.kept], [[], [slice.date]], 'the recorder may have further lines')
  const again = await runImport(lake, 'kalshi', { lines }, { keepsRaw: false })
  assert.deepEqual(again.sealed, [slice.date])
  const manifest = await readManifest(lake, 'kalshi', slice.date)
  assert.ok(manifest?.sealed?.some((segment) => segment.name === name))
  assert.equal(existsSync(published), false)
})

test('a segment that came after the fold of a replacement stays', async (t) => {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const lines = recordedLines()
  await runImport(lake, 'kalshi', { lines })
  const slice = { recorder: 'r1', date: '2026-06-24', hour: 23, fromMinute: 50, toMinute: 55 }
  const { name, path } = await writeSegment(other, slice)
  const onWrite = (): void => {
    if (existsSync(path)) renameSync(path, join(rawDateDirectory(lake, 'kalshi', slice.date), name))
  }
  const options = { replace: true, progress: { onWrite } }
  await runImport(lake, 'kalshi', { lines: lines.slice(0, 50) }, options)
  const names = await segmentsOnDisk(lake, 'kalshi', slice.date)
  assert.ok(names.includes(name))
})

test('a listed but missing segment is named', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = recordedLines()
  await runImport(lake, 'kalshi', { lines })
  const segment = (await entriesBelow(lake)).find((name) => name.endsWith('.ndjson.gz'))!
  await rm(join(lake, segment))
  const before = await entriesBelow(lake)
  await assert.rejects(runImport(lake, 'kalshi', { lines: lines.slice(200) }), (error) => {
    assert.ok(error instanceof ClosedDateError)
    assert.ok(error.message.includes(`its manifest lists ${segment}, which the lake lacks`), error.message)
    return true
  })
  assert.deepEqual(await entriesBelow(lake), before)
})

test('a replacement must have every series of the date', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = recordedLines()
  await runImport(lake, 'kalshi', { lines })
  const before = await entriesBelow(lake)
  const ofOne = lines.filter((line) => !line.includes('KXHIGHCHI'))
  await assert.rejects(
    runImport(lake, 'kalshi', { lines: ofOne }, { replace: true }),
    /kalshi 2026-06-24 has order-book files of KXHIGHCHI, of which the recording holds no messages\./,
  )
  assert.deepEqual(await entriesBelow(lake), before)
})
