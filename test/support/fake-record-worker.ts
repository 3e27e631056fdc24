// A record worker whose DuckDB is controlled by the test's marker file: no file, it answers; `fail`, it fails; `hang`, it never
// answers again; `busy`, it answers requests but not probes. Requests get an empty list.

import { existsSync, readFileSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import type { RecordProbeTask, RecordTask } from '../../shared/record-task.ts'
import { chunkMemory, type WorkerThreadData, type WarmTask } from '../../shared/stream-task.ts'

const marker = process.env['BOOKCAST_TEST_DUCKDB_MARKER'] ?? ''
const { answered } = workerData as WorkerThreadData

export default async function runFakeTask(task: RecordTask | WarmTask | RecordProbeTask): Promise<void> {
  if ('warm' in task) return
  const state = existsSync(marker) ? readFileSync(marker, 'utf8') : ''
  if ('probe' in task) {
    if (state === 'fail') throw new Error('the database is broken')
    if (state === 'hang' || state === 'busy') {
      while (existsSync(marker)) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return
  }
  const { port } = task
  port.postMessage({
    kind: 'head',
    rows: 0,
    nextOffset: null,
    identity: null,
    isHeld: false,
    seenFiles: null,
  })
  // A running request, large enough for its head to be sent; with `busy`, its database answers.
  const left = new Promise((resolve) => port.once('close', resolve))
  const timer = setInterval(() => {
    if (state === 'busy') new Float64Array(answered)[0] = Date.now()
  }, 5)
  port.postMessage({ kind: 'chunk', number: 0, buffer: chunkMemory(4096), length: 4096 })
  port.on('message', ({ kind }: { kind: string }) => {
    if (kind === 'cancel') port.close()
  })
  await left
  clearInterval(timer)
}
