// The inputs of an import: files, each once, and stdin. Their order does not matter.

import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { messageOf } from '../../shared/error-message.ts'

// The text of a piece must fit the heap's ordinary pages (128 KiB): a larger one gets memory of its own, fresh from the system.
const READ_BYTES = 120 * 1024
const STDIN = '-'

export interface ImportInput {
  /** The input's name in messages. */
  readonly name: string
  /** `undefined` for stdin. */
  readonly sizeBytes: number | undefined
  readonly open: () => Readable
}

/** An input that cannot be read, by name. */
export class UnreadableInputError extends Error {
  constructor(message: string, cause: unknown) {
    super(`${message}: ${messageOf(cause)}`, { cause })
    this.name = 'UnreadableInputError'
  }
}

/** The inputs in the order in which they are read. Throws UnreadableInputError. */
export async function openInputs(
  paths: readonly string[],
  stdin: Readable,
  signal: AbortSignal,
): Promise<ImportInput[]> {
  const inputs: ImportInput[] = []
  for (const path of new Set(paths.filter((one) => one !== STDIN))) {
    signal.throwIfAborted()
    inputs.push({
      name: path,
      sizeBytes: await sizeOf(path),
      open: () => createReadStream(path, { highWaterMark: READ_BYTES }),
    })
  }
  if (paths.includes(STDIN) || paths.length === 0) {
    inputs.push({ name: 'stdin', sizeBytes: undefined, open: () => stdin })
  }
  return inputs
}

// A file that cannot be opened is reported before the first file is read.
async function sizeOf(path: string): Promise<number> {
  try {
    const file = await open(path)
    try {
      const stats = await file.stat()
      if (stats.isDirectory()) throw new Error('it is a directory')
      return stats.size
    } finally {
      await file.close()
    }
  } catch (error) {
    throw new UnreadableInputError(`cannot read ${path}`, error)
  }
}
