// The embedded relational store: PGlite in a thread of its own, for a machine without a PostgreSQL server. Owns the
// data directory's lock and the thread, and starts the thread again when it dies. Clients find it at one socket path
// all the time, so after a restart they only connect again. PGlite never syncs its files to the disk: a killed process
// loses nothing, a power cut may damage the store. What must survive that belongs into a real PostgreSQL.

import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { backOffMs, EMBEDDED_STORE_BACK_OFF } from '../tasks/back-off.ts'
import { DataDirectoryLock } from './data-directory-lock.ts'
import type { EmbeddedWorkerData, EmbeddedWorkerMessage } from './embedded-postgres-worker.ts'

const CREATION = new URL('./embedded-postgres-creation.js', import.meta.url)
const STORE = new URL('./embedded-postgres-worker.js', import.meta.url)

/** A store thread that died is started again after growing pauses; one that lived so long begins with the first. */
const EMBEDDED_HEALTHY_MS = 60_000
/** Start of the embedded store, the creation of its data directory included. */
const EMBEDDED_START_MS_MAX = 120_000
const EMBEDDED_CLOSE_MS_MAX = 10_000

export interface EmbeddedPostgresOptions {
  /** Made when it is missing. */
  readonly directory: string
  /** Told whenever the thread has died or could not be started; it is started again. */
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

  /** Resolves when the store takes connections; rejects with DataDirectoryLocked when another process has it. */
  static async start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
    const directory = resolve(options.directory)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const socketDirectory = await makeSocketDirectory(directory)
    const socketPath = join(socketDirectory, 'clients')
    const lock = await DataDirectoryLock.acquire(directory, socketPath)
    const paths = { databaseDirectory: join(directory, 'pglite'), socketDirectory, socketPath }
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

  /** Ends the store cleanly: the statement that runs is answered, then the files are closed. */
  async close(): Promise<void> {
    this.#closing.abort()
    const worker = this.#worker
    if (worker !== undefined) {
      const isClosed = nextMessage(worker, 'closed')
      worker.postMessage('close', [])
      await Promise.race([isClosed, delay(EMBEDDED_CLOSE_MS_MAX, undefined, { ref: false })])
      await worker.terminate()
    }
    await rm(this.#paths.socketDirectory, { recursive: true, force: true })
    await this.#lock.release()
  }

  /**
   * Makes the database's files in a thread that ends before another one opens them: making them takes half a gigabyte, which
   * no thread that lives on would give back. They get their name when they are whole.
   */
  async #create(): Promise<void> {
    const { databaseDirectory } = this.#paths
    const draft = `${databaseDirectory}.new`
    await rm(draft, { recursive: true, force: true })
    const { worker } = await this.#begin(CREATION, draft, 'created')
    await worker.terminate()
    await rename(draft, databaseDirectory)
  }

  async #startWorker(): Promise<void> {
    await Promise.all(
      ['clients', 'session'].map((name) => rm(join(this.#paths.socketDirectory, name), { force: true })),
    )
    const { end } = await this.#begin(STORE, this.#paths, 'ready')
    const readyAtMs = performance.now()
    end.catch((error: unknown) => {
      if (performance.now() - readyAtMs >= EMBEDDED_HEALTHY_MS) this.#restarts = 0
      void this.#restart(error)
    })
  }

  /** Resolves when a thread has said what is expected of it. Its `end` rejects when it ends, and with why. */
  async #begin(
    file: URL,
    data: EmbeddedWorkerData | string,
    expected: EmbeddedWorkerMessage,
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
    // Whoever waits for no end hears nothing of it.
    end.catch(() => {})
    const timer = setTimeout(() => {
      failure = new Error(`The embedded store did not start in ${EMBEDDED_START_MS_MAX} ms.`)
      void worker.terminate()
    }, EMBEDDED_START_MS_MAX)
    try {
      await Promise.race([nextMessage(worker, expected), end])
    } finally {
      clearTimeout(timer)
    }
    return { worker, end }
  }

  // It is never given up: what ends it again and again is most often a full disk, which has space again some day.
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

function nextMessage(worker: Worker, expected: EmbeddedWorkerMessage): Promise<void> {
  return new Promise((done) => {
    const onMessage = (message: EmbeddedWorkerMessage): void => {
      if (message !== expected) return
      worker.off('message', onMessage)
      done()
    }
    worker.on('message', onMessage)
  })
}

/** A directory that only this user may enter: whoever reaches the sockets owns the data. */
async function makeSocketDirectory(directory: string): Promise<string> {
  const inside = join(directory, 'sockets')
  if (Buffer.byteLength(join(inside, 'clients')) > SOCKET_PATH_BYTES_MAX) {
    return mkdtemp(join(tmpdir(), 'bookcast-'))
  }
  await mkdir(inside, { recursive: true, mode: 0o700 })
  await chmod(inside, 0o700)
  return inside
}
