// Explains why the lake could not be written, or a part of it not be read, in a sentence for the user of a command. The system's own
// message ("EACCES: permission denied, mkdir …") states neither the purpose nor a remedy.

import { accessSync, constants, existsSync, mkdirSync, readlinkSync, rmdirSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'

/** System calls that are also used to read files outside the lake, and whose errors have no path. */
const READING_CALLS = new Set(['read', 'fstat', 'close'])
const CAUSES_MAX = 5

/**
 * A sentence for an error while writing below `lake` (or another directory, called `noun`), with the system's code and path.
 * `undefined` for any other error (of the program, or about a path outside the lake). Errors in `cause` are searched too.
 */
export function describeLakeWriteError(error: unknown, lake: string, noun = 'the lake'): string | undefined {
  const found = systemErrorOf(error)
  if (found === undefined) return undefined
  const { path, dest, syscall = '' } = found
  const code = codeOf(found)
  // The error of a rename has both names: the second is the obstacle, the first is a temporary name.
  const place = [dest, path].find((one) => one !== undefined && isAtOrBelow(lake, one))
  const isAboveLake = path !== undefined && isAtOrBelow(path, lake)
  if (path === undefined ? READING_CALLS.has(syscall) : place === undefined && !isAboveLake) return undefined
  const reason = linkToNowhere(code, place ?? path ?? lake) ?? REASONS[code]?.(place ?? path ?? lake)
  const at = path === undefined || path === lake ? code : `${code} at ${place ?? path}`
  const verb = syscall === 'scandir' || (syscall === 'open' && isUnreadable(path!)) ? 'read' : 'written'
  return reason === undefined ? undefined : `${noun} ${lake} cannot be ${verb}: ${reason} (${at})`
}

function isUnreadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
  } catch {
    return existsSync(path)
  }
  return false
}

interface SystemError {
  readonly code?: string
  readonly path?: string
  readonly dest?: string
  readonly syscall?: string
}

const MISSING_RIGHT = (): string => 'this user may not; run as one who may, or give this one the right'
const REASONS: Readonly<Record<string, (place: string) => string>> = {
  EACCES: MISSING_RIGHT,
  EPERM: MISSING_RIGHT,
  EROFS: () => 'its file system is mounted read-only',
  ENOSPC: () => 'its disk is full; free some space and run it again',
  EDQUOT: () => "this user's disk quota is used up",
  ENOENT: () => 'it or a directory above it does not exist and cannot be made, or was removed meanwhile',
  ENOTDIR: (place) => `${place} is not below a directory but below a file`,
  EEXIST: (place) => `${place} is a file where a directory must be; remove or rename it`,
  EISDIR: (place) => `${place} is a directory where a file must be; remove or rename it`,
  ENAMETOOLONG: () => 'a name in it is longer than its file system allows',
  ELOOP: (place) => `${place} is a link that leads back to itself`,
  EMFILE: () => 'too many files are open; raise the limit (ulimit -n)',
  ENFILE: () => 'too many files are open on this machine',
  EIO: () => 'its disk reports an error',
  EXDEV: () => 'parts of it lie on different file systems, between which no file can be renamed',
}

/** The error, with that sentence as its message where there is one. */
export function asLakeWriteError(error: unknown, lake: string, noun?: string): unknown {
  const reason = describeLakeWriteError(error, lake, noun)
  return reason === undefined ? error : new Error(reason, { cause: error })
}

function systemErrorOf(error: unknown): SystemError | undefined {
  let current = error
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth++) {
    if ('code' in current && 'syscall' in current) return current as SystemError
    current = current.cause
  }
  return undefined
}

// For a recursive mkdir on a full or read-only disk, Node reports ENOENT. Making the first missing directory shows the real reason.
function codeOf({ code = '', path, syscall }: SystemError): string {
  if (code !== 'ENOENT' || syscall !== 'mkdir' || path === undefined) return code
  let missing = resolve(path)
  while (!existsSync(dirname(missing))) missing = dirname(missing)
  if (existsSync(missing)) return code
  try {
    mkdirSync(missing)
    rmdirSync(missing)
    return code
  } catch (error) {
    return systemErrorOf(error)?.code ?? code
  }
}

// For a dangling link the system reports that something is missing, exists already, or is no directory.
function linkToNowhere(code: string, place: string): string | undefined {
  if (code !== 'ENOTDIR' && code !== 'EEXIST' && code !== 'ENOENT') return undefined
  let at = resolve(place)
  let target = linkTarget(at)
  while ((target === undefined || existsSync(at)) && dirname(at) !== at) {
    at = dirname(at)
    target = linkTarget(at)
  }
  if (target === undefined) return undefined
  return `${at} is a link to ${target}, which does not exist; make that directory or remove the link`
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function isAtOrBelow(directory: string, path: string): boolean {
  const way = relative(resolve(directory), resolve(path))
  return way === '' || (way !== '..' && !way.startsWith('../') && !way.startsWith('/'))
}
