// README's first request gives the answer that README shows.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { startSampleServer } from '../support/sample-server.ts'

const README = new URL('../../../README.md', import.meta.url)
const EXAMPLE = /```sh\ncurl 'http:\/\/127\.0\.0\.1:8080([^']+)'\n```\n\n```text\n([^`]+)```/

test("README's first request is answered as README shows", async (t) => {
  const [, target = '', shown] = EXAMPLE.exec(await readFile(README, 'utf8')) ?? []
  const { url } = await startSampleServer(t)
  assert.equal(await (await fetch(url + target)).text(), shown)
})
