import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { BadLineError } from '../../server/feed/bad-line.ts'
import { readLines } from '../../server/import/line-reader.ts'
import type { LineReaderOptions } from '../../server/import/line-reader.ts'

function pieces(bytes: Buffer, size: number): Readable {
  const list: Buffer[] = []
  for (let from = 0; from < bytes.length; from += size) list.push(bytes.subarray(from, from + size))
  return Readable.from(list)
}

async function linesOf(input: Readable, options: LineReaderOptions = {}): Promise<string[]> {
  const lines: string[] = []
  for await (const batch of readLines(input, options)) {
    for (const { number, text } of batch) {
      lines.push(typeof text === 'string' ? `${number} ${text}` : `${number} !${text.message}`)
    }
  }
  return lines
}

// A zstd frame as in RFC 8878 with raw blocks, because Node 20 has no compressor.
function zstdFrame(bytes: Buffer, blockBytes = 7): Buffer {
  const blocks: Buffer[] = []
  for (let from = 0; from === 0 || from < bytes.length; from += blockBytes) {
    const block = bytes.subarray(from, from + blockBytes)
    blocks.push(zstdBlock(block, from + blockBytes >= bytes.length))
  }
  return Buffer.concat([ZSTD_FRAME_START, ...blocks])
}

// Magic number, no checksum, a window of 128 KiB.
const ZSTD_FRAME_START = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38])

function zstdBlock(block: Buffer, isLast: boolean): Buffer {
  const header = Buffer.alloc(3)
  header.writeUIntLE(block.length * 8 + (isLast ? 1 : 0), 0, 3)
  return Buffer.concat([header, block])
}

const ZSTD_SKIPPED_FRAME = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
// `{"seq":0}` to `{"seq":399}`, a line each, as `zstd --check -19` compresses them.
const ZSTD_400_LINES = Buffer.from(
  'KLUv/QRoLAkABt86E7BX0gFoByAJZLv33ltKubYBOBA6ADcALgCyBKmgmJCIaDAWR4gqdSqNtux6Q4vEoTBYkuMMrNFmsljHbS+spmc57nx/uGgk' +
    'yg1wEAQCCAYKAgwCx/f5+z98hSk8YQlHuGGGFz4cwlVUU1JRLdbqClVENCQUVCKNpkA1NDMyMR3O5glTQjIiElKhLLHEETdmvPg4xNWpT5cevZ19' +
    '/R56ceLDhQcvJx+fB16b9mzZsbu5t99h19PPywFUTy111K1Zr74OddFEDy100KVJj54OdM00zyxzzJ05b34Oc8kkjyxyyJUpT14OcsUUT4DHqBAY' +
    'z7cD4NcQRgR+29s3b+9evXt79u3ttbd3+jdYNBgsGAwOCoYGAwuDaSwAAQAA9gIFKQV9CADWZUEOwKXF//9ghFb2zuR/OG85AD8AOQBjGG2skcYZ' +
    'Hx1ljPE2rG0t7ezrysaeBjUtJR1dVdHQE4NoYokkjrioKGKIF4bQwgopnPDQUMII7yTfGU4766Rzzk9POeO8YAhasIIUnOBBgxKM4JnBNLNMMsfc' +
    '1BQzzCtDaWWVVE55aSlllEcG0sgiiRxyUlLIIC9B3xxmm2umeeZnZ5ljvg9vX08///vy8efBzcvJx3ddPPzkIJtcMskjLyuLHPLFIba4YoonPjaW' +
    'OCJAcHe47a6b7rm/veWO+8IhbOEKU3jChw1LOMJnB9vssskee1tb7LCvDrXVVVM99bW11FEfHWijiyZ66GlpoQOAyFQDAAYBClGyOA==',
  'base64',
)

test('plain text, gzip and zstd of several parts give the same lines in pieces of any size', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\n\r]/g, '')),
        { maxLength: 20 },
      ),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(20),
      async (texts, size, split) => {
        const whole = Buffer.from(texts.map((text) => `${text}\n`).join(''))
        const expected = texts
          .map((text, index) => ({ text, number: index + 1 }))
          .filter(({ text }) => text.trim() !== '')
          .map(({ text, number }) => `${number} ${text}`)
        const cut = Math.min(split, whole.length)
        const members = Buffer.concat([gzipSync(whole.subarray(0, cut)), gzipSync(whole.subarray(cut))])
        assert.deepEqual(await linesOf(pieces(whole, size)), expected)
        assert.deepEqual(await linesOf(pieces(gzipSync(whole), size)), expected)
        assert.deepEqual(await linesOf(pieces(members, size)), expected)
        const frames = [
          zstdFrame(whole.subarray(0, cut)),
          ZSTD_SKIPPED_FRAME,
          zstdFrame(whole.subarray(cut), 3),
        ]
        assert.deepEqual(await linesOf(pieces(Buffer.concat(frames), size)), expected)
        assert.deepEqual(await linesOf(pieces(Buffer.concat(frames.toReversed()), size)), [
          ...(await linesOf(Readable.from([whole.subarray(cut), whole.subarray(0, cut)]))),
        ])
      },
    ),
    { numRuns: 60 },
  )
})

test('reads a last line without a line feed, and counts empty lines', async () => {
  assert.deepEqual(await linesOf(pieces(Buffer.from('a\n\n \r\nb\r\nc'), 2)), ['1 a', '4 b\r', '5 c'])
  assert.deepEqual(await linesOf(Readable.from([])), [])
})

test('a line over the limit and an invalid UTF-8 line do not affect their neighbours', async () => {
  const bytes = Buffer.concat([
    Buffer.from('ok\n'),
    Buffer.from([0xff, 10]),
    Buffer.from(`${'x'.repeat(50)}\nend\n`),
  ])
  for (const size of [1, 7, 1000]) {
    assert.deepEqual(await linesOf(pieces(bytes, size), { lineBytesMax: 20 }), [
      '1 ok',
      '2 !not valid UTF-8',
      '3 !longer than 20 bytes',
      '4 end',
    ])
  }
  assert.deepEqual(await linesOf(pieces(Buffer.from('x'.repeat(50)), 7), { lineBytesMax: 20 }), [
    '1 !longer than 20 bytes',
  ])
})

test('truncated or damaged gzip ends with a line that reports it', async () => {
  const zipped = gzipSync(Buffer.from('one\ntwo\nthree\n'))
  const lines = await linesOf(pieces(zipped.subarray(0, -9), 5))
  assert.match(lines.at(-1)!, /!the gzip data is damaged or ends too early/)
  const damaged = Buffer.from(zipped)
  damaged[12]! ^= 0xff
  assert.match((await linesOf(pieces(damaged, 5))).at(-1)!, /!the gzip data is damaged/)
})

test('gzip with trailing data is not treated as complete', async () => {
  const zipped = gzipSync(Buffer.from('one\ntwo\n'))
  const more = gzipSync(Buffer.from('three\n'))
  for (const size of [1, 5, 1000]) {
    // An interrupted recorder left zeros; lines that it wrote after its restart must not be silently lost.
    for (const end of [Buffer.from('{"a":1}\n'), Buffer.concat([Buffer.alloc(40), more])]) {
      const lines = await linesOf(pieces(Buffer.concat([zipped, end]), size))
      assert.match(lines.at(-1)!, /^[13] !the gzip data is damaged or ends too early/)
    }
    assert.deepEqual(await linesOf(pieces(Buffer.concat([zipped, Buffer.alloc(40)]), size)), [
      '1 one',
      '2 two',
    ])
  }
})

test('every line before a truncation or garbage is read, also by a slow reader', async () => {
  const texts = Array.from(
    { length: 4000 },
    (_, seq) => `{"seq":${seq},"x":${(seq * 2_654_435_761) % 9973}}\n`,
  )
  const zipped = gzipSync(texts.join(''))
  for (const bytes of [
    zipped.subarray(0, -8),
    Buffer.concat([zipped.subarray(0, -8), Buffer.alloc(8)]),
    Buffer.concat([zipped, Buffer.from('Terminated\n')]),
  ]) {
    for (const size of [500, 7000, 100_000]) {
      const lines: (string | BadLineError)[] = []
      for await (const batch of readLines(pieces(bytes, size))) {
        lines.push(...batch.map(({ text }) => text))
        await setTimeout(1)
      }
      const last = lines.pop()
      assert.ok(last instanceof BadLineError)
      assert.match(last.message, /^the gzip data is damaged or ends too early/)
      assert.equal(lines.length, 4000, `${bytes.length} ${size}`)
    }
  }
})

test('reads zstd of the reference compressor, and detects truncation and damage at any byte', async () => {
  const expected = Array.from({ length: 400 }, (_, seq) => `${seq + 1} {"seq":${seq}}`)
  assert.deepEqual(await linesOf(pieces(ZSTD_400_LINES, 13)), expected)
  assert.deepEqual((await linesOf(pieces(Buffer.concat([ZSTD_400_LINES, ZSTD_400_LINES]), 99))).length, 800)
  for (let length = 5; length < ZSTD_400_LINES.length; length += 11) {
    const lines = await linesOf(pieces(ZSTD_400_LINES.subarray(0, length), 1000))
    assert.match(
      lines.at(-1)!,
      /^\d+ !the zstd data is damaged or ends too early \(it ends within a frame\)$/,
    )
    assert.deepEqual(lines.slice(0, -1), expected.slice(0, lines.length - 1))
  }
  for (let at = 5; at < ZSTD_400_LINES.length; at++) {
    const damaged = Buffer.from(ZSTD_400_LINES)
    damaged[at]! ^= 0x10
    const lines = await linesOf(pieces(damaged, 1000))
    if (lines.length === 400) assert.deepEqual(lines, expected)
    else assert.match(lines.at(-1)!, /!the zstd data is damaged/)
  }
  const junk = await linesOf(pieces(Buffer.concat([ZSTD_400_LINES, Buffer.from('{"seq":400}\n')]), 1000))
  assert.match(junk.at(-1)!, /^401 !the zstd data is damaged .*no zstd frame where one must begin/)
  // A window of 256 MiB.
  const huge = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, ...zstdBlock(Buffer.from('x\n'), true)])
  assert.match((await linesOf(pieces(huge, 3))).join(), /^1 !the zstd data .*a window above 128 MiB/)
})

test('an unsupported compression is refused by name, with the command that opens it', async () => {
  const cases: [string, RegExp][] = [
    ['425a683931415926', /bzip2 is not supported; .*: bzip2 -dc FILE \| bookcast import/],
    ['fd377a585a000004', /xz is not supported; .*: xz -dc FILE/],
    ['504b030414000000', /zip is not supported; .*: unzip -p FILE/],
    ['377abcaf271c0004', /7z is not supported; .*: 7z x -so FILE/],
    ['04224d186440a700', /lz4 is not supported; .*: lz4 -dc FILE/],
  ]
  for (const [hex, message] of cases) {
    for (const size of [1, 100]) await assert.rejects(linesOf(pieces(Buffer.from(hex, 'hex'), size)), message)
  }
})

test('an input that is abandoned early is closed, with any compression', async () => {
  const text = Buffer.from('x\n'.repeat(400_000))
  for (const bytes of [text, gzipSync(text, { level: 0 }), zstdFrame(text, 1000)]) {
    const input = pieces(bytes, 64)
    for await (const lines of readLines(input)) {
      assert.ok(lines.length > 0)
      break
    }
    if (!input.destroyed) await once(input, 'close')
    assert.ok(input.destroyed)
  }
})

test('counts the bytes read and passes on errors of the input', async () => {
  const zipped = gzipSync(Buffer.from('one\ntwo\n'))
  let bytes = 0
  await linesOf(pieces(zipped, 5), { onBytes: (count) => (bytes += count) })
  assert.equal(bytes, zipped.length)
  const failing = new Readable({
    read() {
      this.destroy(new Error('the disk is gone'))
    },
  })
  await assert.rejects(linesOf(failing), /the disk is gone/)
})

test('a signal ends the wait for a silent input', async () => {
  const controller = new AbortController()
  const silent = new Readable({ read: () => undefined })
  const reading = linesOf(silent, { signal: controller.signal })
  controller.abort(new Error('enough'))
  await assert.rejects(reading, /enough/)
  assert.ok(silent.destroyed)
})

test('decompresses no more zstd than requested, however high the compression ratio', async () => {
  // Four bytes of an RLE block expand to 128 KiB.
  const spaces = Buffer.from([0x02, 0x00, 0x10, 0x20])
  let given = 0
  const endless = new Readable({
    highWaterMark: 1,
    read() {
      this.push(
        given === 0 ? ZSTD_FRAME_START : Buffer.concat([spaces, zstdBlock(Buffer.from('\nx\n'), false)]),
      )
      given++
    },
  })
  let taken = 0
  for await (const lines of readLines(endless)) {
    taken += lines.length
    assert.ok(given - taken <= 20, `${given} ${taken}`)
    if (taken > 100) break
  }
  assert.ok(endless.destroyed)
})

test('reads ahead at most as much as its buffers hold, however long the input is', async () => {
  let given = 0
  const endless = new Readable({
    highWaterMark: 4096,
    read() {
      given += 1024
      this.push(Buffer.from(`${'x'.repeat(63)}\n`.repeat(16)))
    },
  })
  let taken = 0
  for await (const lines of readLines(endless)) {
    taken += lines.length * 64
    assert.ok(given - taken <= 16 * 1024, `${given - taken}`)
    if (taken > 1024 * 1024) break
  }
  assert.ok(endless.destroyed)
})
