// The embedded relational store: PGlite in its own thread, for a machine without a PostgreSQL server. Holds the data directory's
// lock, and restarts the thread when it dies. The socket path stays the same, so clients only need to reconnect. PGlite never syncs
// its files: a killed process loses nothing, but a power cut may damage the store. Use a real PostgreSQL if the data must survive
// that.

import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import { backOffMs, EMBEDDED_STORE_BACK_OFF } from '../tasks/back-off.ts'
import { DataDirectoryLock } from './data-directory-lock.ts'
import type { EmbeddedWorkerData } from './embedded-postgres-worker.ts'

const CREATION = new URL('./embedded-postgres-creation.js', import.meta.url)
const STORE = new URL('./embedded-postgres-worker.js', import.meta.url)

/** A dead store thread is restarted with a growing back-off, which is reset after it has run this long. */
const EMBEDDED_HEALTHY_MS = 60_000
/** Includes the creation of the data directory. */
const EMBEDDED_START_MS_MAX = 120_000
const EMBEDDED_CLOSE_MS_MAX = 10_000

export interface EmbeddedPostgresOptions {
  /** Created if missing. */
  readonly directory: string
  /** Called whenever the thread has died or failed to start; it is restarted. */
  readonly onFailure?: ((error: Error) => void) | undefined
}

// A Unix socket's path is limited to 108 bytes on Linux and 104 on macOS.
const SOCKET_PATH_BYTES_MAX = 100

export class EmbeddedPostgres {
  readonly #options: EmbeddedPostgresOptions
  readonly #paths: EmbeddedWorkerData
  readonly #lock: DataDirectoryLock
  readonly #closing = new AbortController()
  #worker: Worker | undefined
  #restarts = 0

  private constructor(options: EmbeddedPostgresOptions, paths: EmbeddedWorkerData, lock: DataDirectoryLock) {
    this.#options = options
    this.#paths = paths
    this.#lock = lock
  }

  /** Resolves when the store takes connections; rejects with DataDirectoryLocked if another process has it. */
  static async start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
    const directory = resolve(options.directory)
    const { lock, socketPath } = await takeDirectory(directory).catch((error: unknown) => {
      throw asLakeWriteError(error, directory, 'the data directory')
    })
    const paths = { databaseDirectory: join(directory, 'pglite'), socketPath }
    const store = new EmbeddedPostgres(options, paths, lock)
    try {
      if (!existsSync(paths.databaseDirectory)) await store.#create()
      await store.#startWorker()
    } catch (error) {
      await lock.release()
      throw error
    }
    return store
  }

  get address(): StoreAddress {
    return { kind: 'embedded', socketPath: this.#paths.socketPath }
  }

  /** Closes the store cleanly: the running statement is answered, then the files are closed. */
  async close(): Promise<void> {
    this.#closing.abort()
    const worker = this.#worker
    if (worker !== undefined) {
      // A thread that is still starting posts `ready` first.
      const isClosed = nextMessage(worker, 'closed')
      worker.postMessage('close')
      await Promise.race([isClosed, delay(EMBEDDED_CLOSE_MS_MAX, undefined, { ref: false })])
      await worker.terminate()
    }
    await rm(dirname(this.#paths.socketPath), { recursive: true, force: true })
    await this.#lock.release()
  }

  /**
   * Makes the database's files in a thread that ends before the store's thread opens them: this takes half a gigabyte, which a
   * living thread would not return. The directory gets its name when the files are complete.
   */
  async #create(): Promise<void> {
    const { databaseDirectory } = this.#paths
    const draft = `${databaseDirectory}.new`
    await rm(draft, { recursive: true, force: true })
    const { worker } = await this.#begin(CREATION, draft)
    await worker.terminate()
    await rename(draft, databaseDirectory)
  }

  async #startWorker(): Promise<void> {
    await rm(this.#paths.socketPath, { force: true })
    const { end } = await this.#begin(STORE, this.#paths)
    const readyAtMs = performance.now()
    end.catch((error: unknown) => {
      if (performance.now() - readyAtMs >= EMBEDDED_HEALTHY_MS) this.#restarts = 0
      void this.#restart(error)
    })
  }

  /** Resolves when a thread has posted its first message. `end` rejects with the reason when the thread ends. */
  async #begin(
    file: URL,
    data: EmbeddedWorkerData | string,
  ): Promise<{ readonly worker: Worker; readonly end: Promise<never> }> {
    const worker = new Worker(file, { workerData: data })
    this.#worker = worker
    let failure = new Error('The thread of the embedded store ended.')
    worker.on('error', (error) => {
      failure = new Error(`The embedded store in ${this.#options.directory} failed: ${String(error)}`, {
        cause: error,
      })
    })
    const end = new Promise<never>((_, reject) => {
      worker.once('exit', () => {
        if (this.#worker === worker) this.#worker = undefined
        reject(failure)
      })
    })
    // Avoids an unhandled rejection if no caller awaits `end`.
    end.catch(() => {})
    const timer = setTimeout(() => {
      failure = new Error(`The embedded store did not start in ${EMBEDDED_START_MS_MAX} ms.`)
      void worker.terminate()
    }, EMBEDDED_START_MS_MAX)
    try {
      await Promise.race([nextMessage(worker), end])
    } finally {
      clearTimeout(timer)
    }
    return { worker, end }
  }

  // It never gives up: repeated failures mostly come from a full disk, which will have space again.
  async #restart(error: unknown): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#restarts += 1
    this.#options.onFailure?.(error instanceof Error ? error : new Error(String(error)))
    const pauseMs = backOffMs(EMBEDDED_STORE_BACK_OFF, this.#restarts)
    try {
      await delay(pauseMs, undefined, { signal: this.#closing.signal })
      await this.#startWorker()
    } catch (startError) {
      await this.#restart(startError)
    }
  }
}

/** Unlike events.once, it does not reject with an error of the thread, which `end` describes. */
function nextMessage(worker: Worker, expected?: 'closed'): Promise<void> {
  return new Promise((done) => {
    worker.on('message', (message) => {
      if (expected === undefined || message === expected) done()
    })
  })
}

async function takeDirectory(directory: string): Promise<{ lock: DataDirectoryLock; socketPath: string }> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const socketPath = join(await makeSocketDirectory(directory), 'clients')
  return { lock: await DataDirectoryLock.acquire(directory, socketPath), socketPath }
}

/** A directory that only this user may enter, because access to the sockets gives access to the data. */
async function makeSocketDirectory(directory: string): Promise<string> {
  const inside = join(directory, 'sockets')
  if (Buffer.byteLength(join(inside, 'clients')) > SOCKET_PATH_BYTES_MAX) {
    return mkdtemp(join(tmpdir(), 'bookcast-'))
  }
  await mkdir(inside, { recursive: true, mode: 0o700 })
  await chmod(inside, 0o700)
  return inside
}
