// Asks the system for files in the sight of the server: see shared/file-watch.ts. A thread serves one request at a time.

import { FileWatch } from '../../shared/file-watch.ts'
import { lakeFileError } from '../lake/lake-file-error.ts'

let watch: FileWatch | undefined
let silentFiles: readonly string[] = []

/** From now on files are asked for on behalf of this request. `silent`: others wait for those already. */
export function watchFiles(memory: SharedArrayBuffer, silent: readonly string[]): void {
  watch = new FileWatch(memory)
  silentFiles = silent
}

/** Runs `ask`, which waits for a file or directory of this name. */
export function watched<Value>(name: string, ask: () => Value): Value {
  if (silentFiles.length > 0 && silentFiles.includes(name))
    throw lakeFileError(name, 'it does not answer another request')
  watch?.begin(name)
  try {
    return ask()
  } finally {
    watch?.end()
  }
}
