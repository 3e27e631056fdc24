// The thread of the embedded store: PGlite on a data directory, and the gate for all clients on a private Unix socket. It is a
// thread because WebAssembly computes synchronously. It posts a message when it takes connections and, after a message from its
// owner, one when it has closed the store. If the store breaks, the thread ends with an error, and its owner starts it again.

import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { EmbeddedPostgresGate } from './embedded-postgres-gate.ts'

/** Paths for the thread: where PGlite keeps its files, and the socket, which is in a private directory. */
export interface EmbeddedWorkerData {
  readonly databaseDirectory: string
  readonly socketPath: string
}

async function serve({ databaseDirectory, socketPath }: EmbeddedWorkerData): Promise<void> {
  const database = await PGlite.create({ dataDir: databaseDirectory })
  const gate = new EmbeddedPostgresGate(database)
  await gate.listen(socketPath)
  parentPort?.once('message', () => void close())
  parentPort?.postMessage('ready')

  async function close(): Promise<void> {
    await gate.close()
    await database.close()
    parentPort?.postMessage('closed')
  }
}

await serve(workerData as EmbeddedWorkerData)
