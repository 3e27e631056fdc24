// The gate of the embedded store, with a database that stops answering.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { startupMessage, SYNC_MESSAGE } from '../../server/storage/wire-protocol.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const GATE = new URL('../../server/storage/embedded-postgres-gate.js', import.meta.url)
/** PGlite swallows a trap of WebAssembly, such as a full stack, and answers nothing from then on. */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
import(${JSON.stringify(GATE.href)}).then(async ({ EmbeddedPostgresGate }) => {
  let answers = [Buffer.from('Z\\0\\0\\0\\x05I', 'latin1')]
  const gate = new EmbeddedPostgresGate({
    execProtocolRawStream: async (_, { onRawData }) => onRawData(answers.pop() ?? Buffer.alloc(0)),
  })
  await gate.listen(workerData)
  parentPort.postMessage('ready')
})`

test('a database that no longer answers ends its thread', { timeout: 20_000 }, async (t) => {
  const socketPath = join(await temporaryDirectory(t), 'clients')
  const worker = new Worker(THREAD, { eval: true, workerData: socketPath })
  t.after(() => worker.terminate())
  await once(worker, 'message')
  const ended = once(worker, 'error')
  const client = createConnection(socketPath)
  t.after(() => client.destroy())
  client.write(startupMessage('postgres', 'postgres'))
  await once(client, 'data')
  client.end(SYNC_MESSAGE)
  const [error] = await ended
  assert.match(String(error), /PGlite cannot continue: it does not answer/)
})
