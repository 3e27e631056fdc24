// A segment's file: its name states its digest, it appears atomically, and every kind of damage gives an error of one sentence.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  appendFile,
  copyFile,
  mkdir,
  readFile,
  readdir,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { rawDateDirectory, rawSegmentOfName, rawSourceDirectory } from '../../shared/lake-layout.ts'
import { describeLakeWriteError } from '../../server/lake/lake-write-error.ts'
import { framesText, headerText, messageText } from '../../server/raw/segment-lines.ts'
import type { SegmentHeader, SegmentLine } from '../../server/raw/segment-lines.ts'
import { DamagedSegmentError, readSegment, verifySegment } from '../../server/raw/segment-reader.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import type { SegmentFacts } from '../../server/raw/segment-writer.ts'
import { withDuckDb } from '../support/duckdb.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const HEADER: SegmentHeader = {
  source: 'kalshi',
  reading: { series: undefined, sequence: 'strict', useYesPrice: false },
}
const PLACE = { date: '2026-07-01', hour: 7, recorder: 'import' }
const START = 1_783_015_200_000_000_000n

type Line = readonly [recvTs: bigint | undefined, text: string]

function linesOf(count: number): Line[] {
  return Array.from({ length: count }, (_, index) => {
    const recvTs = START + BigInt(index)
    return [recvTs, framesText(recvTs, `{"type":"ok","id":${index},"é":"${'x'.repeat(index % 50)}"}`, false)]
  })
}

async function write(
  lake: string,
  lines: readonly Line[],
  place = PLACE,
  header = HEADER,
): Promise<SegmentFacts> {
  const writer = await SegmentWriter.open(lake, header)
  for (const [recvTs, text] of lines) {
    writer.add(text, recvTs)
    if (writer.isFull) await writer.drained()
  }
  return await writer.finish(place)
}

async function read(path: string): Promise<SegmentLine[]> {
  const lines: SegmentLine[] = []
  for await (const batch of readSegment(path)) lines.push(...batch)
  return lines
}

/** Writes the content of a segment under its correct name. */
async function placeContent(lake: string, text: string | Buffer, gzipped = gzipSync(text)): Promise<string> {
  const directory = rawDateDirectory(lake, 'kalshi', PLACE.date)
  await mkdir(directory, { recursive: true })
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 32)
  const path = join(directory, `import-07-${digest}.ndjson.gz`)
  await writeFile(path, gzipped)
  return path
}

test('the name states the digest of the lines, and the facts are those of the lines', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = [
    ...linesOf(3),
    [undefined, '{"skipped":1}'] as const,
    [START - 5n, messageText(START - 5n, 'PONG')] as const,
  ]
  const facts = await write(lake, lines)
  const content = [headerText(HEADER), ...lines.map(([, text]) => text), ''].join('\n')
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 32)
  assert.equal(
    facts.path,
    join(rawDateDirectory(lake, 'kalshi', '2026-07-01'), `import-07-${digest}.ndjson.gz`),
  )
  assert.deepEqual(rawSegmentOfName(facts.name), { recorder: 'import', hour: 7, digest })
  assert.equal(gunzipSync(await readFile(facts.path)).toString('utf8'), content)
  assert.deepEqual(
    { lines: facts.lines, firstTs: facts.firstTs, lastTs: facts.lastTs },
    { lines: 5, firstTs: START - 5n, lastTs: START + 2n },
  )
})

test('lines are read as they were written, however many there are', async (t) => {
  const lake = await temporaryDirectory(t)
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(
          fc.option(fc.bigInt({ min: 0n, max: 9n * 10n ** 18n }), { nil: undefined }),
          fc.oneof(
            { weight: 20, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
            { weight: 1, arbitrary: fc.nat(2_000_000).map((length) => 'é'.repeat(length)) },
          ),
        ),
        { maxLength: 30 },
      ),
      async (messages) => {
        const facts = await write(
          lake,
          messages.map(([recvTs, text]) => [recvTs, messageText(recvTs, text)]),
        )
        const [header, ...lines] = await read(facts.path)
        assert.ok(header?.kind === 'header')
        assert.deepEqual(header.header, HEADER)
        assert.deepEqual(
          lines.map((line) => line.kind === 'text' && [line.recvTs, line.text]),
          messages,
        )
        await verifySegment(facts.path)
      },
    ),
    { numRuns: 30 },
  )
})

test('many lines keep their order and their number', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = linesOf(50_000)
  const facts = await write(lake, lines)
  assert.equal(facts.lines, 50_000)
  const texts = (await read(facts.path)).flatMap((line) => (line.kind === 'frames' ? [line.text] : []))
  assert.deepEqual(
    texts,
    lines.map(([, text]) => text.slice(text.indexOf('"frame":') + 8, -1)),
  )
})

test('the same lines are one file, which a second write leaves unchanged', async (t) => {
  const lake = await temporaryDirectory(t)
  const first = await write(lake, linesOf(100))
  const before = await stat(first.path)
  const writer = await SegmentWriter.open(lake, HEADER)
  for (const [recvTs, text] of linesOf(100)) writer.add(text, recvTs)
  const staged = await writer.stage(PLACE)
  assert.equal(staged.isPresent, true)
  await staged.publish()
  const after = await stat(first.path)
  assert.deepEqual([after.ino, after.mtimeMs], [before.ino, before.mtimeMs])
  // A file compressed by another zlib counts as the same.
  await writeFile(first.path, gzipSync(gunzipSync(await readFile(first.path)), { level: 1 }))
  const again = await write(lake, linesOf(100))
  assert.equal(again.path, first.path)
  assert.equal(await filesIn(lake), 1)
})

test('a damaged segment is replaced when its lines are written again', async (t) => {
  const lake = await temporaryDirectory(t)
  const { path } = await write(lake, linesOf(100))
  await truncate(path, (await stat(path)).size - 10)
  await write(lake, linesOf(100))
  await verifySegment(path)
})

test('a partial segment is never visible and leaves no files', async (t) => {
  const lake = await temporaryDirectory(t)
  const writer = await SegmentWriter.open(lake, HEADER)
  for (const [recvTs, text] of linesOf(20_000)) writer.add(text, recvTs)
  await writer.drained()
  assert.deepEqual(await segmentsIn(lake), [])
  const staged = await writer.stage(PLACE)
  assert.deepEqual(await segmentsIn(lake), [])
  await staged.discard()
  assert.equal(await filesIn(lake), 0)
  const second = await SegmentWriter.open(lake, HEADER)
  second.add('{"skipped":1}', undefined)
  await second.discard()
  await second.discard()
  assert.equal(await filesIn(lake), 0)
})

test('the error for a file in place of the segment directory says what is wrong with the lake', async (t) => {
  const lake = await temporaryDirectory(t)
  await mkdir(rawSourceDirectory(lake, 'kalshi'), { recursive: true })
  await writeFile(rawDateDirectory(lake, 'kalshi', PLACE.date), '')
  const error = await write(lake, linesOf(1)).then(
    () => assert.fail('nothing failed'),
    (reason: unknown) => reason,
  )
  assert.match(
    describeLakeWriteError(error, lake) ?? '',
    /date=2026-07-01 is a file where a directory must be|not below a directory/,
  )
  assert.equal((await readdir(rawSourceDirectory(lake, 'kalshi'))).length, 1)
})

test('a full disk fails the write with its message and leaves no files', async (t) => {
  await onSmallDisk(t, 4, async (disk) => {
    const lake = join(disk.path, 'lake')
    const writer = await SegmentWriter.open(lake, HEADER)
    await disk.fill()
    const noise = (index: number): string =>
      messageText(undefined, createHash('sha512').update(String(index)).digest('base64'))
    const failure = async (): Promise<void> => {
      for (let index = 0; index < 200_000; index++) {
        writer.add(noise(index), undefined)
        if (writer.isFull) await writer.drained()
      }
      await writer.finish(PLACE)
    }
    const error = await failure().then(
      () => assert.fail('nothing failed'),
      (reason: unknown) => reason,
    )
    assert.match(describeLakeWriteError(error, lake) ?? '', /its disk is full; free some space/)
    await writer.discard()
    assert.equal(await filesIn(lake), 0)
    await disk.free()
    await verifySegment((await write(lake, linesOf(100))).path)
  })
})

test('the error for every damage is one sentence with the file and the remedy', async (t) => {
  const lake = await temporaryDirectory(t)
  const header = headerText(HEADER)
  const line = framesText(1n, '{"type":"ok"}', false)
  const valid = `${header}\n${line}\n`
  const cut = gzipSync(valid)
  const cases: [string, () => string | Promise<string>, RegExp][] = [
    [
      'cut',
      () => placeContent(lake, `${valid}${line}\n`, cut.subarray(0, -9)),
      /is damaged or ends too early \(.*\)\./,
    ],
    [
      'empty',
      () => placeContent(lake, '', Buffer.alloc(0)),
      /is damaged( or ends too early \(.*\)|: it is empty)\./,
    ],
    [
      'no gzip',
      () => placeContent(lake, `${valid}${line}\n${line}\n`, Buffer.from(valid)),
      /is damaged or ends too early/,
    ],
    ['no lines', () => placeContent(lake, ''), /is damaged: it is empty\./],
    [
      'other content',
      () => damaged(lake, (path) => writeFile(path, gzipSync(valid))),
      /its content does not match its name\./,
    ],
    ['a bit', () => damaged(lake, flipped), /is damaged/],
    [
      'half a line',
      () => placeContent(lake, valid.slice(0, -1)),
      /is damaged: its last line is not complete\./,
    ],
    [
      'half a line at the end',
      () => placeContent(lake, `${valid}${line.slice(0, 9)}`),
      /its last line is not complete\./,
    ],
    [
      'no JSON',
      () => placeContent(lake, `${header}\n${line.slice(0, -1)}\n`),
      /is damaged: a line is not valid JSON\./,
    ],
    ['no line', () => placeContent(lake, `${header}\n{"a":1}\n`), /is damaged: a line has neither frame/],
    [
      'an empty line',
      () => placeContent(lake, `${header}\n\n${line}\n`),
      /is damaged: it has an empty line\./,
    ],
    [
      'no UTF-8',
      () => placeContent(lake, Buffer.from(`${valid}"\xff"\n`, 'latin1')),
      /is damaged: it is not valid UTF-8\./,
    ],
    ['no header', () => placeContent(lake, `${line}\n`), /is damaged: it does not begin with a header\./],
    ['two headers', () => placeContent(lake, `${valid}${header}\n`), /is damaged: it has a second header\./],
    [
      'a newer format',
      () => placeContent(lake, '{"segment":9}\n'),
      /its format is 9, which this version does not read\./,
    ],
    [
      'another source',
      () => placeContent(lake, `{"segment":1,"source":"polymarket","recorder":"a"}\n${line}\n`),
      /is in the wrong place: it holds messages of polymarket, not of kalshi\./,
    ],
    [
      'misnamed',
      () => renamed(lake),
      /is misnamed: its name is not <recorder>-<hour>-<digest>\.ndjson\.gz\./,
    ],
    ['missing', () => join(lake, `import-07-${'0'.repeat(32)}.ndjson.gz`), /is missing\./],
  ]
  for (const [what, given, reason] of cases) {
    const path = await given()
    await assert.rejects(read(path), isDamage(path, reason), what)
    // The content of lines is not checked.
    if (!/no JSON|no line|two headers/.test(what))
      await assert.rejects(verifySegment(path), isDamage(path, reason), what)
    await rm(path, { force: true })
  }
})

test('an unreadable file is not reported as a damaged segment', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = join(lake, `import-07-${'0'.repeat(32)}.ndjson.gz`)
  await mkdir(path)
  await assert.rejects(read(path), /^Error: Cannot read segment .*EISDIR/)
})

test('reading ends with the signal', async (t) => {
  const lake = await temporaryDirectory(t)
  const { path } = await write(lake, linesOf(20_000))
  const controller = new AbortController()
  const reading = async (): Promise<void> => {
    for await (const batch of readSegment(path, { signal: controller.signal })) {
      assert.ok(batch.length > 0)
      controller.abort(new Error('enough'))
    }
  }
  await assert.rejects(reading(), /enough/)
})

function isDamage(path: string, reason: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof DamagedSegmentError &&
    error.message.startsWith(`Segment ${path} `) &&
    reason.test(error.message) &&
    /Restore it .* `bookcast rebuild --from (\S+) --to \1 --without-damaged`\.$/.test(error.message)
}

async function damaged(lake: string, damage: (path: string) => Promise<unknown>): Promise<string> {
  const { path } = await write(lake, linesOf(500))
  await damage(path)
  return path
}

async function flipped(path: string): Promise<void> {
  const bytes = await readFile(path)
  const middle = bytes.length >> 1
  bytes[middle] = bytes[middle]! ^ 0x40
  await writeFile(path, bytes)
}

async function renamed(lake: string): Promise<string> {
  const { path } = await write(lake, linesOf(1))
  const other = join(dirname(path), basename(path).replace('import-07', 'import-7'))
  await copyFile(path, other)
  return other
}

async function segmentsIn(lake: string): Promise<string[]> {
  const names = await readdir(rawSourceDirectory(lake, 'kalshi'), { recursive: true })
  return names.filter((name) => rawSegmentOfName(basename(name)) !== undefined)
}

async function filesIn(lake: string): Promise<number> {
  if (!existsSync(join(lake, 'raw'))) return 0
  const entries = await readdir(join(lake, 'raw'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).length
}

test('bytes after the compressed data do not change the content of the segment', async (t: TestContext) => {
  const lake = await temporaryDirectory(t)
  const { path } = await write(lake, linesOf(10))
  await appendFile(path, Buffer.alloc(512))
  assert.equal((await read(path)).length, 11)
})

test('DuckDB can read a segment', async (t) => {
  const lake = await temporaryDirectory(t)
  const lines = [
    ...linesOf(20),
    [undefined, '{"skipped":1}'] as const,
    [START, messageText(START, 'PONG')] as const,
  ]
  const { path } = await write(lake, lines)
  const rows = await withDuckDb(async (connection) => {
    const sql = `select count(*), count(frame), max(frame.id), min(recv_ts), count(text), sum(skipped) from read_ndjson('${path}')`
    return (await connection.runAndReadAll(sql)).getRowsJson()
  })
  assert.deepEqual(rows, [['23', '20', '19', String(START), '1', '1']])
})
