import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
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

test('plain text, gzip and gzip of several members give the same lines in pieces of any size', async () => {
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
      },
    ),
    { numRuns: 60 },
  )
})

test('reads a last line without its end, and counts empty lines', async () => {
  assert.deepEqual(await linesOf(pieces(Buffer.from('a\n\n \r\nb\r\nc'), 2)), ['1 a', '4 b\r', '5 c'])
  assert.deepEqual(await linesOf(Readable.from([])), [])
})

test('a line over the bound and one that is no UTF-8 are told apart from their neighbours', async () => {
  const bytes = Buffer.concat([
    Buffer.from('ok\n'),
    Buffer.from([0xff, 10]),
    Buffer.from(`${'x'.repeat(50)}\nend\n`),
  ])
  for (const size of [1, 7, 1000]) {
    assert.deepEqual(await linesOf(pieces(bytes, size), { lineBytesMax: 20 }), [
      '1 ok',
      '2 !no valid UTF-8',
      '3 !longer than 20 bytes',
      '4 end',
    ])
  }
  assert.deepEqual(await linesOf(pieces(Buffer.from('x'.repeat(50)), 7), { lineBytesMax: 20 }), [
    '1 !longer than 20 bytes',
  ])
})

test('gzip that is cut or damaged ends with a line that says so', async () => {
  const zipped = gzipSync(Buffer.from('one\ntwo\nthree\n'))
  const lines = await linesOf(pieces(zipped.subarray(0, -9), 5))
  assert.match(lines.at(-1)!, /!the gzip data is damaged or ends too early/)
  const damaged = Buffer.from(zipped)
  damaged[12]! ^= 0xff
  assert.match((await linesOf(pieces(damaged, 5))).at(-1)!, /!the gzip data is damaged/)
})

test('counts the bytes read and passes on what the input throws', async () => {
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

test('a signal ends the wait for an input that says nothing', async () => {
  const controller = new AbortController()
  const silent = new Readable({ read: () => undefined })
  const reading = linesOf(silent, { signal: controller.signal })
  controller.abort(new Error('enough'))
  await assert.rejects(reading, /enough/)
  assert.ok(silent.destroyed)
})

test('reads ahead by no more than its buffers, however long the input is', async () => {
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
