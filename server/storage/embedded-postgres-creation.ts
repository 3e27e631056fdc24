// The thread that makes the files of a new embedded store in a given directory, and then posts a message.

import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'

/** PostgreSQL's own cache; the system's cache makes up for it. With the usual 128 MB, each start would zero all of it. */
const SHARED_BUFFERS_MB = 32

const directory = workerData as string
const database = await PGlite.create({ dataDir: directory })
await database.close()
await appendFile(join(directory, 'postgresql.conf'), `shared_buffers = ${SHARED_BUFFERS_MB}MB\n`)
parentPort?.postMessage('created')
