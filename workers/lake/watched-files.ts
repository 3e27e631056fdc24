// Marks each blocking file access of this thread, so that the server can detect one that blocks (shared/file-watch.ts). A blocked
// access stops the whole thread, so it is marked for all requests of the thread.

import { type BigIntStats, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { ApiError } from '../../shared/errors.ts'
import { FILE_ANSWER_MS_MAX, FileWatch } from '../../shared/file-watch.ts'
import { withinTime } from '../../shared/within-time.ts'
import { lakeFileError } from './lake-file-error.ts'

const watches = new Set<FileWatch>()
let silentFiles: readonly string[] = []

/**
 * Registers a request: file accesses are marked for it too until the returned function is called. `silent`: files that do not
 * answer other requests.
 */
export function watchFiles(memory: SharedArrayBuffer, silent: readonly string[]): () => void {
  const watch = new FileWatch(memory)
  watch.markBegun()
  watches.add(watch)
  silentFiles = silent
  return () => watches.delete(watch)
}

/** Runs `ask`, which accesses the file or directory `name` and may block. */
export function watched<Value>(name: string, ask: () => Value): Value {
  if (silentFiles.length > 0 && silentFiles.includes(name))
    throw lakeFileError(name, 'it does not answer another request')
  for (const watch of watches) watch.begin(name)
  try {
    return ask()
  } finally {
    for (const watch of watches) watch.end()
  }
}

/** Undefined if there is no such file, or if it cannot be looked at: whoever opens it gets the error. */
export function watchedStat(name: string, path: string): BigIntStats | undefined {
  try {
    return watched(name, () => statSync(path, { bigint: true, throwIfNoEntry: false }))
  } catch (error) {
    if (error instanceof ApiError) throw error
    return undefined
  }
}

/** A file of the lake: its name below the root, and its path. */
interface NamedFile {
  readonly name: string
  readonly path: string
}

/**
 * Waits for a result that other threads (a database, the thread pool) make of some files. If it takes long, this thread reads
 * from each file itself, marked, so that the server detects a file that does not answer.
 */
export async function answered<Value>(files: readonly NamedFile[], made: Promise<Value>): Promise<Value> {
  const boxed = made.then((value) => ({ value }))
  for (;;) {
    const box = await withinTime(boxed, FILE_ANSWER_MS_MAX)
    if (box !== undefined) return box.value
    for (const file of files) look(file)
  }
}

function look({ name, path }: NamedFile): void {
  try {
    watched(name, () => {
      const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        readSync(fd, new Uint8Array(1))
      } finally {
        closeSync(fd)
      }
    })
  } catch {
    // An error is an answer too. The reader of the file reports it.
  }
}
