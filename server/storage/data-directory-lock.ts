// One process per data directory: PGlite takes no lock, and two processes on one directory destroy it. The lock is a file that
// names its owner. A dead owner is detected (lock-owner.ts, lock-beat.ts).

import { randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isErrno } from '../../shared/errno.ts'
import { STALE_TEMP_AGE_MS } from '../../shared/limits.ts'
import { beatLock } from './lock-beat.ts'
import { isAlive, type LockOwner, parseOwner, processSpace, processStart, readIfThere } from './lock-owner.ts'

/** A takeover of a dead lock that takes longer than this is taken for one whose process died. */
const LOCK_TAKEOVER_MS_MAX = 10_000
const LOCK_RETRY_MS = 20
const DRAFT_NAME = /^lock\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Attempts of a starting process to take the lock. */
const LOCK_ATTEMPTS_MAX = 1_000

/** Another process uses the directory. */
export class DataDirectoryLocked extends Error {
  readonly pid: number
  /** The socket on which the owner listens. */
  readonly socketPath: string

  readonly host: string

  constructor(directory: string, owner: LockOwner) {
    super(
      `The data directory ${directory} is in use by process ${owner.pid} on ${owner.host}. Stop that process, or give` +
        ` this one a data directory of its own, or set DATABASE_URL so that several can share a PostgreSQL server.`,
    )
    this.name = 'DataDirectoryLocked'
    this.pid = owner.pid
    this.host = owner.host
    this.socketPath = owner.socketPath
  }
}

export class DataDirectoryLock {
  readonly #path: string
  readonly #content: string
  #endBeat: (() => Promise<void>) | undefined

  private constructor(path: string, content: string) {
    this.#path = path
    this.#content = content
  }

  /**
   * Takes the lock, or rejects with DataDirectoryLocked.
   * @param socketPath where the owner will listen
   * @param onLost set if the owner does not listen anywhere: its lock beats instead. Called once if another process takes the lock
   * nevertheless, as it may after this process was suspended for long
   * @param isOfThread the owner is one of several threads of its process, and its lock beats
   */
  static async acquire(
    directory: string,
    socketPath: string,
    onLost?: (error: Error) => void,
    { isOfThread = false } = {},
  ): Promise<DataDirectoryLock> {
    const path = join(directory, 'lock')
    const self: LockOwner = {
      pid: process.pid,
      host: hostname(),
      space: await processSpace(),
      processStart: await processStart(process.pid),
      socketPath,
      ...(onLost === undefined ? {} : { beats: true }),
      ...(isOfThread ? { isOfThread } : {}),
      id: randomUUID(),
    }
    const content = `${JSON.stringify(self)}\n`
    // Written completely under another name and then linked, so that no process sees a half-written lock.
    const draftPath = `${path}.${self.id}`
    try {
      await writeFile(draftPath, content, { mode: 0o600 })
      for (let attempt = 1; attempt <= LOCK_ATTEMPTS_MAX; attempt += 1) {
        if (await succeeds(link(draftPath, path), 'EEXIST')) {
          const lock = new DataDirectoryLock(path, content)
          if (onLost !== undefined) await lock.#beat(draftPath, onLost)
          await removeOldDrafts(directory)
          return lock
        }
        await removeStale(directory, path, draftPath)
      }
      throw new Error(`The lock ${path} keeps changing its owner.`)
    } finally {
      await rm(draftPath, { force: true })
    }
  }

  /** Releases the lock, unless another process has taken it. */
  async release(): Promise<void> {
    await this.#endBeat?.()
    if ((await readIfThere(this.#path)) === this.#content) await rm(this.#path, { force: true })
  }

  /** Writes into the draft, which is the same file as the lock, so it can never write into another's lock. */
  async #beat(draftPath: string, onLost: (error: Error) => void): Promise<void> {
    try {
      this.#endBeat = beatLock(this.#path, await open(draftPath, 'r+'), onLost)
    } catch (error) {
      await this.release()
      throw error
    }
  }
}

/** Removes drafts of processes that were killed while they took the lock. Best effort. */
async function removeOldDrafts(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!DRAFT_NAME.test(name)) continue
    const path = join(directory, name)
    const modifiedMs = (await stat(path).catch(() => undefined))?.mtimeMs ?? Infinity
    if (modifiedMs < Date.now() - STALE_TEMP_AGE_MS) await rm(path, { force: true }).catch(() => undefined)
  }
}

/** Removes a dead owner's lock, unless another process is doing so; rejects if the owner lives. */
async function removeStale(directory: string, path: string, draftPath: string): Promise<void> {
  const content = await readIfThere(path)
  if (content === undefined) return
  const owner = parseOwner(content)
  if (owner !== undefined && (await isAlive(owner, path, draftPath)))
    throw new DataDirectoryLocked(directory, owner)
  // A lock is removed only within a takeover, and only if it is still the one found dead. Otherwise a slow process would remove the
  // lock that a faster one has made meanwhile.
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

/** False if the operation fails with the expected code. */
async function succeeds(operation: Promise<unknown>, expectedCode: string): Promise<boolean> {
  try {
    await operation
    return true
  } catch (error) {
    if (isErrno(error, expectedCode)) return false
    throw error
  }
}
