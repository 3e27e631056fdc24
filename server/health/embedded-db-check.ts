// Sends a query to an embedded analytical database in a process without record threads, which has no DuckDB that serves
// requests (record-pool.ts checks that one). A separate thread loads the database with the first check, because loading
// blocks a thread for some 300 ms. A query that does not return in time counts as a failure, and no other is sent before it
// has ended.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { withinTime } from '../../shared/within-time.ts'
import type { DatabaseCheck } from './health-monitor.ts'

/** The first query loads the database and takes longer; on a busy machine more than a second. */
const LOAD_FACTOR = 5
const PROBE_URL = new URL('../../workers/records/probe.js', import.meta.url)

export function embeddedDbCheck(): DatabaseCheck {
  let thread: Worker | undefined
  let running: Promise<boolean> | undefined
  let hasAnswered = false
  const start = (): Worker => {
    const started = new Worker(PROBE_URL)
    // The thread ends with the process.
    started.unref()
    started.on('error', () => {})
    started.once('exit', () => (thread = undefined))
    return started
  }
  return async (timeoutMs) => {
    running ??= ask((thread ??= start())).finally(() => (running = undefined))
    const answer = await withinTime(running, hasAnswered ? timeoutMs : LOAD_FACTOR * timeoutMs)
    hasAnswered ||= answer !== undefined
    return answer ?? false
  }
}

async function ask(thread: Worker): Promise<boolean> {
  const over = new AbortController()
  const { signal } = over
  try {
    thread.postMessage('probe')
    const answers = [once(thread, 'message', { signal }), once(thread, 'exit', { signal })]
    const [answer] = (await Promise.race(answers)) as [unknown]
    return answer === true
  } catch {
    return false
  } finally {
    over.abort()
  }
}
