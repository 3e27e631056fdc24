// The thread of the embedded store: PGlite on a data directory, its socket server on a private Unix socket, and the gate for all
// clients. It is a thread because WebAssembly computes synchronously. It posts `ready` once and ends on `close`. If the store
// breaks, the thread ends with an error, and its owner starts it again.

import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { EmbeddedPostgresGate } from './embedded-postgres-gate.ts'

/** Paths for the thread: where PGlite keeps its files, and a private directory for the two sockets. */
export interface EmbeddedWorkerData {
  readonly databaseDirectory: string
  readonly socketDirectory: string
  readonly socketPath: string
}

export type EmbeddedWorkerMessage = 'created' | 'ready' | 'closed'

async function serve(paths: EmbeddedWorkerData): Promise<void> {
  const database = await PGlite.create({ dataDir: paths.databaseDirectory })
  const sessionPath = join(paths.socketDirectory, 'session')
  const server = new PGLiteSocketServer({ db: database, path: sessionPath, maxConnections: 1 })
  await server.start()
  const gate = await EmbeddedPostgresGate.open(sessionPath, (reason) => {
    // Not caught on purpose: the thread ends, and the broken store with it.
    throw new Error(`PGlite cannot continue: ${reason}`)
  })
  await gate.listen(paths.socketPath)
  parentPort?.once('message', () => void close())
  post('ready')

  async function close(): Promise<void> {
    await gate.close()
    await server.stop()
    await database.close()
    post('closed')
  }
}

function post(message: EmbeddedWorkerMessage): void {
  parentPort?.postMessage(message, [])
}

await serve(workerData as EmbeddedWorkerData)
