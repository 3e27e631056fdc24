// Asks the system for files in the sight of the server: see shared/file-watch.ts. While a file does not answer, the thread
// stands still with all requests that it serves, so all of them say so.

import { FileWatch } from '../../shared/file-watch.ts'
import { lakeFileError } from './lake-file-error.ts'

const watches = new Set<FileWatch>()
let silentFiles: readonly string[] = []

/**
 * A request begins: until what is returned is called, files are asked for on its behalf too. `silent` are the files that
 * others wait for already.
 */
export function watchFiles(memory: SharedArrayBuffer, silent: readonly string[]): () => void {
  const watch = new FileWatch(memory)
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
