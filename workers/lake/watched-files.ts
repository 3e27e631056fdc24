// Asks the system for files in the sight of the server: see shared/file-watch.ts. While a file does not answer, the thread
// stands still with all requests that it serves, so all of them say so.

import { closeSync, constants, openSync, readSync } from 'node:fs'
import { FILE_ANSWER_MS_MAX, FileWatch } from '../../shared/file-watch.ts'
import { withinTime } from '../../shared/within-time.ts'
import { lakeFileError } from './lake-file-error.ts'

const watches = new Set<FileWatch>()
let silentFiles: readonly string[] = []

/**
 * A request begins: until what is returned is called, files are asked for on its behalf too. `silent` are the files that
 * others wait for already.
 */
export function watchFiles(memory: SharedArrayBuffer, silent: readonly string[]): () => void {
  const watch = new FileWatch(memory)
  watch.markBegun()
  watches.add(watch)
  silentFiles = silent
  return () => watches.delete(watch)
}

/** Runs `ask`, which waits for a file or directory of this name. */
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

/** A file of the lake: its name below the root, and where it is. */
interface NamedFile {
  readonly name: string
  readonly path: string
}

/**
 * What somebody else makes of some files, who waits for them beside this thread (a database, the thread pool). When that
 * takes long, this thread looks itself whether each of them answers: where one does not, that is seen.
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
    // An error is an answer; who reads the file tells it.
  }
}
