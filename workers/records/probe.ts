// A thread for processes without record threads. For each message it runs DuckDB's probe query and posts whether the result was
// right (server/health/embedded-db-check.ts).

import { parentPort } from 'node:worker_threads'
import { DuckLake } from './duck-lake.ts'

const duck = new DuckLake()
parentPort?.on('message', () => {
  void duck.probe().then(
    () => parentPort?.postMessage(true),
    () => parentPort?.postMessage(false),
  )
})
