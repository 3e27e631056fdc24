// A disk of kept answers that does not answer costs a moment, whether it is asked, read or written, and whatever is no
// file is given up.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises'
import { pino } from 'pino'
import { BlockCache } from '../../server/lob/block-cache.ts'
import { SPAN_BYTES } from '../../server/lob/block-file.ts'
import { KeptDisk } from '../../server/lob/kept-disk.ts'
import { KeepingStream, KeptStream } from '../../server/lob/kept-streams.ts'
import type { ByteStream } from '../../server/http/byte-stream.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

/** More than the threads with which Node asks disks. */
const QUESTIONS = 8
const BODY = patternBytes(3 * SPAN_BYTES + 1000)

async function keep(t: TestContext): Promise<{ cache: BlockCache; directory: string }> {
  const directory = await temporaryDirectory(t)
  const cache = new BlockCache({ directory, bytesMax: 1e9, logger: pino({ level: 'silent' }) })
  const writer = cache.keep('key', { identity: 'x', coding: 'identity', rows: 1 })!
  writer.take(BODY)
  await writer.finish()
  return { cache, directory }
}

/** All disks are silent to this process until the returned function is called. */
function silenceDisks(directory: string): () => Promise<void> {
  const pipe = join(directory, 'pipe')
  execFileSync('mkfifo', [pipe])
  const questions = Array.from({ length: QUESTIONS }, async () => (await open(pipe, 'r')).close())
  return async () => {
    const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
    await Promise.all(questions)
    closeSync(writer)
  }
}

test('a pipe in place of a kept answer is given up', { timeout: 20_000 }, async (t) => {
  const { cache, directory } = await keep(t)
  const path = join(directory, 'key.identity')
  rmSync(path)
  execFileSync('mkfifo', [path])
  assert.equal(await cache.find('key', 'identity'), undefined)
  assert.equal(existsSync(path), false)
  assert.equal(cache.figures.damaged, 1)
})

test('a silent disk is asked once and then left alone until it answers', { timeout: 20_000 }, async (t) => {
  const { cache } = await keep(t)
  const speak = silenceDisks(await temporaryDirectory(t))
  assert.equal(await cache.find('key', 'identity'), undefined)
  const again = cache.find('key', 'identity')
  assert.equal(await Promise.race([again, nextTurn('it is asked again')]), undefined)
  await speak()
  let body = await cache.find('key', 'identity')
  while (body === undefined) {
    await setTimeout(10)
    body = await cache.find('key', 'identity')
  }
  assert.equal(body.sizeBytes, BODY.length)
  body.close()
})

/** The body in pieces that are cut elsewhere than on disk. */
function threadStream(): ByteStream {
  const pieces = [BODY.subarray(0, 1_000_000), BODY.subarray(1_000_000, 5_000_000), BODY.subarray(5_000_000)]
  return { rows: 1, next: async () => pieces.shift() ?? null, close: async () => {} }
}

async function restOf(stream: ByteStream): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let part = await stream.next(); part !== null; part = await stream.next())
    parts.push(Buffer.from(part))
  return Buffer.concat(parts)
}

/** Goes on through what has a time limit, without waiting for it. */
async function pastTimeLimits<T>(t: TestContext, wait: () => Promise<T>): Promise<T> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const done = wait()
  const over = done.then(() => 'over')
  while ((await Promise.race([over, nextTurn('not yet')])) !== 'over') t.mock.timers.tick(10_000)
  t.mock.timers.reset()
  return done
}

test(
  'a disk that falls silent in the midst of an answer: it goes on from a thread',
  { timeout: 20_000 },
  async (t) => {
    const { cache, directory } = await keep(t)
    const body = (await cache.find('key', 'identity'))!
    const keeperOf = () => cache.keep('key', { identity: 'x', coding: 'identity' as const, rows: 1 })
    const remake = async (): Promise<ByteStream> => threadStream()
    const stream = new KeptStream({ rows: 1, bodies: new Map([['identity', body]]), remake, keeperOf })
    // The second span is asked for by now.
    const first = Buffer.from((await stream.next())!)
    await setTimeout(50)
    const speak = silenceDisks(await temporaryDirectory(t))
    const rest = await pastTimeLimits(t, () => restOf(stream))
    assert.ok(Buffer.concat([first, rest]).equals(BODY))
    assert.equal(cache.disk.isSilent, true)
    assert.equal(await cache.find('key', 'identity'), undefined)
    assert.equal(keeperOf(), undefined, 'nothing is kept there')
    await stream.close()
    await speak()
    while (cache.disk.isSilent) await setTimeout(10)
    assert.equal(existsSync(join(directory, 'key.identity')), true, 'what may be whole stays')
    assert.equal(cache.figures.damaged, 0)
  },
)

test('a coded form on a silent disk is not waited for', { timeout: 20_000 }, async (t) => {
  const { cache } = await keep(t)
  const body = (await cache.find('key', 'identity'))!
  const speak = silenceDisks(await temporaryDirectory(t))
  assert.equal(await pastTimeLimits(t, () => body.isWhole()), false)
  body.close()
  await speak()
})

test('an answer that is being kept ends though the disk falls silent', { timeout: 20_000 }, async (t) => {
  const { cache, directory } = await keep(t)
  const keeperOf = () => cache.keep('other', { identity: 'y', coding: 'identity' as const, rows: 1 })
  const whole = new KeepingStream(threadStream(), keeperOf)
  const cut = new KeepingStream(threadStream(), keeperOf)
  const parts: Buffer[] = [Buffer.from((await whole.next())!)]
  await cut.next()
  const speak = silenceDisks(await temporaryDirectory(t))
  await pastTimeLimits(t, async () => {
    await cut.next()
    await cut.close()
  })
  parts.push(await pastTimeLimits(t, () => restOf(whole)))
  await pastTimeLimits(t, () => whole.close())
  assert.ok(Buffer.concat(parts).equals(BODY))
  assert.equal(keeperOf(), undefined)
  await speak()
  while (cache.disk.isSilent) await setTimeout(10)
  // What was given whole may be there now, and nothing else is.
  const found = await cache.find('other', 'identity')
  assert.ok(found === undefined || (await found.isWhole()))
  found?.close()
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.endsWith('.part')),
    [],
  )
})

test('a silent disk holds two threads at most', async () => {
  const disk = new KeptDisk('', pino({ level: 'silent' }))
  const answers: (() => void)[] = []
  const asked = Array.from({ length: QUESTIONS }, async () =>
    disk.ask(() => new Promise<void>((resolve) => answers.push(resolve))),
  )
  await nextTurn()
  assert.equal(answers.length, 2)
  for (let done = 0; done < QUESTIONS; done++) {
    answers[done]!()
    await nextTurn()
    assert.equal(answers.length, Math.min(done + 3, QUESTIONS))
  }
  assert.equal(await disk.rests(), true)
  await Promise.all(asked)
})

test('a disk that answers soon rests soon, and one that does not is not waited for', async (t) => {
  const disk = new KeptDisk('', pino({ level: 'silent' }))
  assert.equal(await disk.rests(), true)
  const soon = disk.ask(() => nextTurn())
  assert.equal(await disk.rests(), true)
  await soon
  void disk.ask(() => new Promise<void>(() => {}))
  assert.equal(await pastTimeLimits(t, () => disk.rests()), false)
})
