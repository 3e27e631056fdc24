// Reads the owner of a lock from its file, and finds out whether that process lives. It also handles reused process ids, zombies
// (ended processes not collected by their parent), and processes in another container on the same machine.

import { readFile, readlink } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { hostname } from 'node:os'
import { isErrno } from '../../shared/errno.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { isBeating } from './lock-beat.ts'

/** A thread's lock written this recently counts as beating without being watched. */
const BEATS_FRESH_MS = 2_000

export interface LockOwner {
  readonly pid: number
  readonly host: string
  /** Identifies where process ids are valid: the machine's boot and the process-id namespace; null if unknown. */
  readonly space?: string | null
  /** When the process started, as the kernel counts; null if the system does not provide it. */
  readonly processStart: string | null
  /** Where the owner listens while it lives. */
  readonly socketPath: string
  /** Whether it writes the lock repeatedly instead of listening. */
  readonly beats?: boolean
  /** Whether it may end before its process: then only its beats show that it lives. */
  readonly isOfThread?: boolean
  /** Distinguishes it from other locks of the process. */
  readonly id?: string
}

/** The owner of a lock file; undefined if the file was not written completely. */
export function parseOwner(content: string): LockOwner | undefined {
  return parsedJson(content) as LockOwner | undefined
}

export async function isAlive(owner: LockOwner, path: string, draftPath: string): Promise<boolean> {
  if (await isNear(owner)) {
    const start = await processStart(owner.pid)
    const isSame =
      start !== null && owner.processStart !== null
        ? start === owner.processStart
        : owner.processStart === null && isRunning(owner.pid)
    return isSame && (owner.isOfThread !== true || (await isBeating(path, draftPath, BEATS_FRESH_MS)))
  }
  // Process ids of another container are meaningless here, but its socket is reachable in the shared directory.
  return owner.beats === true ? await isBeating(path, draftPath) : await isListening(owner.socketPath)
}

/** Whether the owner's process id is valid in this process's namespace. */
async function isNear({ host, space }: LockOwner): Promise<boolean> {
  const own = await processSpace()
  return host === hostname() && (own === null || space === undefined || space === null || own === space)
}

export async function processSpace(): Promise<string | null> {
  const boot = await readIfThere('/proc/sys/kernel/random/boot_id').catch(() => undefined)
  const namespace = await readlink('/proc/self/ns/pid').catch(() => undefined)
  return boot === undefined || namespace === undefined ? null : `${boot.trim()} ${namespace}`
}

/**
 * Field 22 of /proc/<pid>/stat (proc(5)); the command before it may contain spaces and parentheses. Null for a process that has
 * ended and waits for its parent (field 3: Z, X): it no longer holds anything.
 */
export async function processStart(pid: number): Promise<string | null> {
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

/** A file's text; undefined if there is none, or if its process is gone. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ESRCH')) return undefined
    throw error
  }
}
