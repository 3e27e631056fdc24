// A disk of kept answers that does not answer costs a moment, and whatever is no file is given up.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises'
import { pino } from 'pino'
import { BlockCache } from '../../server/lob/block-cache.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

/** More than the threads with which Node asks disks. */
const QUESTIONS = 8
const BODY = Buffer.alloc(3_000_000, 'row\n')

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
  await body.close()
})
