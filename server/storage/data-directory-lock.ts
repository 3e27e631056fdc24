// One process per data directory: PGlite takes no lock, and two processes on one directory destroy it. The lock is a
// file that names its owner. An owner that died is recognised, also when its process id was given away again or lay in
// another container on the same machine. Not for network file systems.

import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LOCK_ATTEMPTS_MAX, LOCK_RETRY_MS, LOCK_TAKEOVER_MS_MAX } from '../../shared/limits.ts'

interface LockOwner {
  readonly pid: number
  readonly host: string
  /** When the process started, in the kernel's own count; null where the system does not tell. */
  readonly processStart: string | null
  /** Where the owner listens while it lives. */
  readonly socketPath: string
}

/** Another process uses the directory. */
export class DataDirectoryLocked extends Error {
  readonly pid: number

  constructor(directory: string, owner: LockOwner) {
    super(
      `The data directory ${directory} is in use by process ${owner.pid} on ${owner.host}. Stop that process, or give` +
        ` this one a data directory of its own, or set DATABASE_URL so that several can share a PostgreSQL server.`,
    )
    this.name = 'DataDirectoryLocked'
    this.pid = owner.pid
  }
}

export class DataDirectoryLock {
  readonly #path: string
  readonly #content: string

  private constructor(path: string, content: string) {
    this.#path = path
    this.#content = content
  }

  /** Takes the lock, or rejects with DataDirectoryLocked. `socketPath` is where the owner will listen. */
  static async acquire(directory: string, socketPath: string): Promise<DataDirectoryLock> {
    const path = join(directory, 'lock')
    const self: LockOwner = {
      pid: process.pid,
      host: hostname(),
      processStart: await processStart(process.pid),
      socketPath,
    }
    const content = `${JSON.stringify(self)}\n`
    // Written whole under another name and then linked: a lock is never seen half written.
    const draftPath = `${path}.${randomUUID()}`
    await writeFile(draftPath, content, { mode: 0o600 })
    try {
      for (let attempt = 1; attempt <= LOCK_ATTEMPTS_MAX; attempt += 1) {
        if (await succeeds(link(draftPath, path), 'EEXIST')) return new DataDirectoryLock(path, content)
        await removeStale(directory, path)
      }
      throw new Error(`The lock ${path} changes hands all the time.`)
    } finally {
      await rm(draftPath, { force: true })
    }
  }

  /** Gives the lock up, unless it is somebody else's by now. */
  async release(): Promise<void> {
    if ((await readIfThere(this.#path)) === this.#content) await rm(this.#path, { force: true })
  }
}

/** Removes a dead owner's lock, unless somebody else is at it; rejects when the owner lives. */
async function removeStale(directory: string, path: string): Promise<void> {
  const content = await readIfThere(path)
  if (content === undefined) return
  const owner = parseOwner(content)
  if (owner !== undefined && (await isAlive(owner))) throw new DataDirectoryLocked(directory, owner)
  // Only inside the takeover is a lock removed, and only the one that was found dead: else a slow process would remove
  // the lock that a faster one has made meanwhile.
  const takeover = `${path}.takeover`
  if (await succeeds(mkdir(takeover), 'EEXIST')) {
    if ((await readIfThere(path)) === content) await rm(path, { force: true })
    await succeeds(rmdir(takeover), 'ENOENT')
    return
  }
  const age = Date.now() - ((await stat(takeover).catch(() => undefined))?.mtimeMs ?? Date.now())
  if (age > LOCK_TAKEOVER_MS_MAX) await succeeds(rmdir(takeover), 'ENOENT')
  await delay(LOCK_RETRY_MS)
}

/** False when the operation fails with the code expected. */
async function succeeds(operation: Promise<unknown>, expectedCode: string): Promise<boolean> {
  try {
    await operation
    return true
  } catch (error) {
    if (isErrno(error, expectedCode)) return false
    throw error
  }
}

/** The owner of a lock file; undefined for a file that was not written to its end. */
function parseOwner(content: string): LockOwner | undefined {
  try {
    return JSON.parse(content) as LockOwner
  } catch {
    return undefined
  }
}

async function isAlive(owner: LockOwner): Promise<boolean> {
  if (owner.host === hostname()) {
    const start = await processStart(owner.pid)
    if (start !== null && owner.processStart !== null) return start === owner.processStart
    if (start === null && owner.processStart !== null) return false
    return isRunning(owner.pid)
  }
  // In another container process ids mean nothing, but its socket is reachable through the shared directory.
  return isListening(owner.socketPath)
}

/** Field 22 of /proc/<pid>/stat (proc(5)); the command before it may hold spaces and parentheses. */
async function processStart(pid: number): Promise<string | null> {
  const status = await readIfThere(`/proc/${pid}/stat`)
  return status?.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? null
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return isErrno(error, 'EPERM')
  }
}

function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ESRCH')) return undefined
    throw error
  }
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
