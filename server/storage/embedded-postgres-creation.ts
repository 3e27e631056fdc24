// The thread that makes the files of a new embedded store, in the directory it is given, and says `created` once.

import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import type { EmbeddedWorkerMessage } from './embedded-postgres-worker.ts'

const database = await PGlite.create({ dataDir: workerData as string })
await database.close()
parentPort?.postMessage('created' satisfies EmbeddedWorkerMessage, [])
