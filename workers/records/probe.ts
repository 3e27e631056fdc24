// The thread of a process without record threads that asks DuckDB a question for each message, and says whether the
// answer was right (server/health/embedded-db-check.ts).

import { parentPort } from 'node:worker_threads'
import { DuckLake } from './duck-lake.ts'

const duck = new DuckLake()
parentPort?.on('message', () => {
  void duck.probe().then(
    () => parentPort?.postMessage(true),
    () => parentPort?.postMessage(false),
  )
})
