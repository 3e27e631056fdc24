// One process per data directory: PGlite takes no lock, and two processes on one directory destroy it. The lock is a
// file that names its owner. An owner that died is recognised, also when its process id was given away again, when nobody
// has collected its remains (a zombie), or when it lay in another container on the same machine. Owners that listen
// nowhere keep writing into their lock: so two on different machines notice each other through the file alone.

import { randomUUID } from 'node:crypto'
import { type FileHandle, link, mkdir, open, readFile, readlink, rm, rmdir } from 'node:fs/promises'
import { stat, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A process that died while it took over a dead one's lock is forgotten after so long. */
const LOCK_TAKEOVER_MS_MAX = 10_000
const LOCK_RETRY_MS = 20
/** Rounds in which a starting process looks at the lock before it gives up. */
const LOCK_ATTEMPTS_MAX = 1_000

// A lock that beats is written this often; one that did not change for so long while it was watched is nobody's, and
// so is one that was old already. Clocks of machines that share a file system may differ by less than that.
const BEAT_MS = 1_000
const BEAT_WATCH_MS = 10_000
const BEAT_ABANDONED_MS = 5 * 60_000
const BEAT_LOOK_MS = 100
/** A thread's lock that was written so lately is not watched. */
const BEATS_FRESH_MS = 2_000

interface LockOwner {
  readonly pid: number
  readonly host: string
  /** Where process ids mean the same: the machine's boot and the process-id namespace; null where it is not told. */
  readonly space?: string | null
  /** When the process started, in the kernel's own count; null where the system does not tell. */
  readonly processStart: string | null
  /** Where the owner listens while it lives. */
  readonly socketPath: string
  /** Whether it writes the lock again and again instead of listening. */
  readonly beats?: boolean
  /** Whether it may end before its process does: then only its beats say that it lives. */
  readonly isOfThread?: boolean
  /** Tells it from other locks of the process. */
  readonly id?: string
}

/** Another process uses the directory. */
export class DataDirectoryLocked extends Error {
  readonly pid: number
  /** Where the process listens that has the directory. */
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
  #beating: LockBeat | undefined

  private constructor(path: string, content: string) {
    this.#path = path
    this.#content = content
  }

  /**
   * Takes the lock, or rejects with DataDirectoryLocked.
   * @param socketPath where the owner will listen
   * @param onLost the owner does not listen anywhere: its lock beats instead. Called once, should another process have
   * taken it nevertheless, as it may after this one was suspended for long
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
    // Written whole under another name and then linked: a lock is never seen half written.
    const draftPath = `${path}.${self.id}`
    try {
      await writeFile(draftPath, content, { mode: 0o600 })
      for (let attempt = 1; attempt <= LOCK_ATTEMPTS_MAX; attempt += 1) {
        if (await succeeds(link(draftPath, path), 'EEXIST')) {
          const lock = new DataDirectoryLock(path, content)
          if (onLost !== undefined) await lock.#beat(draftPath, onLost)
          return lock
        }
        await removeStale(directory, path, draftPath)
      }
      throw new Error(`The lock ${path} changes hands all the time.`)
    } finally {
      await rm(draftPath, { force: true })
    }
  }

  /** Gives the lock up, unless it is somebody else's by now. */
  async release(): Promise<void> {
    await this.#beating?.end()
    if ((await readIfThere(this.#path)) === this.#content) await rm(this.#path, { force: true })
  }

  /** The draft is the lock: what is written into it can never be another's. */
  async #beat(draftPath: string, onLost: (error: Error) => void): Promise<void> {
    try {
      this.#beating = new LockBeat(this.#path, await open(draftPath, 'r+'), onLost)
    } catch (error) {
      await this.release()
      throw error
    }
  }
}

/** Writes a byte of the owner's own lock file again and again, and looks whether it still is the lock. */
class LockBeat {
  readonly #path: string
  readonly #file: FileHandle
  readonly #timer: NodeJS.Timeout
  readonly #onLost: (error: Error) => void
  #running: Promise<void> | undefined

  constructor(path: string, file: FileHandle, onLost: (error: Error) => void) {
    this.#path = path
    this.#file = file
    this.#onLost = onLost
    this.#timer = setInterval(() => {
      this.#running ??= this.#beat().finally(() => {
        this.#running = undefined
      })
    }, BEAT_MS)
    this.#timer.unref()
  }

  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
    await this.#file.close().catch(() => {})
  }

  async #beat(): Promise<void> {
    try {
      // In place: it needs no space on most file systems; where it does, the time alone must do.
      await this.#file.write('{', 0).catch(() => this.#file.utimes(new Date(), new Date()))
      const [own, found] = await Promise.all([
        this.#file.stat({ bigint: true }),
        stat(this.#path, { bigint: true }).catch(noneThere),
      ])
      // One that was removed is nobody's; whoever takes it next is noticed then.
      if (found === undefined || own.ino === found.ino) return
    } catch {
      // A file system that does not answer now says nothing of the lock; the next beat looks again.
      return
    }
    clearInterval(this.#timer)
    this.#onLost(new Error(`the lock ${this.#path} was taken by another process`))
  }
}

/** Removes a dead owner's lock, unless somebody else is at it; rejects when the owner lives. */
async function removeStale(directory: string, path: string, draftPath: string): Promise<void> {
  const content = await readIfThere(path)
  if (content === undefined) return
  const owner = parseOwner(content)
  if (owner !== undefined && (await isAlive(owner, path, draftPath)))
    throw new DataDirectoryLocked(directory, owner)
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

async function isAlive(owner: LockOwner, path: string, draftPath: string): Promise<boolean> {
  if (await isNear(owner)) {
    const start = await processStart(owner.pid)
    const isSame =
      start !== null && owner.processStart !== null
        ? start === owner.processStart
        : owner.processStart === null && isRunning(owner.pid)
    return isSame && (owner.isOfThread !== true || (await isBeating(path, draftPath, BEATS_FRESH_MS)))
  }
  // In another container process ids mean nothing, but its socket is reachable through the shared directory.
  return owner.beats === true ? await isBeating(path, draftPath) : await isListening(owner.socketPath)
}

/** Whether the owner's process id means here what it means to the owner. */
async function isNear({ host, space }: LockOwner): Promise<boolean> {
  const own = await processSpace()
  return host === hostname() && (own === null || space === undefined || space === null || own === space)
}

/** Watches a lock for as long as it may take its owner to write it once more. */
async function isBeating(path: string, draftPath: string, freshMs = -1): Promise<boolean> {
  // The draft was written a moment ago, and by the clock that also stamps the lock.
  const [first, draft] = await Promise.all([modifiedMs(path), modifiedMs(draftPath)])
  if (first === undefined) return false
  if (draft !== undefined && draft - first > BEAT_ABANDONED_MS) return false
  if (draft !== undefined && draft - first < freshMs) return true
  for (const startMs = performance.now(); performance.now() - startMs < BEAT_WATCH_MS;) {
    await delay(BEAT_LOOK_MS)
    const found = await modifiedMs(path)
    if (found !== first) return found !== undefined
  }
  return false
}

async function modifiedMs(path: string): Promise<number | undefined> {
  return (await stat(path).catch(noneThere))?.mtimeMs
}

async function processSpace(): Promise<string | null> {
  const boot = await readIfThere('/proc/sys/kernel/random/boot_id').catch(() => undefined)
  const namespace = await readlink('/proc/self/ns/pid').catch(() => undefined)
  return boot === undefined || namespace === undefined ? null : `${boot.trim()} ${namespace}`
}

/**
 * Field 22 of /proc/<pid>/stat (proc(5)); the command before it may hold spaces and parentheses. Null for a process that
 * has ended and only waits for its parent to notice (field 3: Z, X): it holds nothing any more.
 */
async function processStart(pid: number): Promise<string | null> {
  const status = await readIfThere(`/proc/${pid}/stat`)
  const fields = status?.slice(status.lastIndexOf(')') + 2).split(' ') ?? []
  return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null)
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

function noneThere(error: unknown): undefined {
  if (!isErrno(error, 'ENOENT')) throw error
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
