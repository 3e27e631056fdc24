// Writes a file that gets its name only when it is complete. The file system module is loaded on first use, because browsers
// do not have it.

/** The parts of node:fs/promises that are used; Deno and Bun have them, too. */
interface FileHandle {
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>
  close(): Promise<void>
}

interface FileSystem {
  open(path: string, flags: string): Promise<FileHandle>
  rename(from: string, to: string): Promise<void>
  rm(path: string, options: { readonly force: boolean }): Promise<void>
}

/** Writes the chunks and returns their size in bytes. If a chunk cannot be read or written, removes the unfinished file. */
export async function writeWhole(path: string, chunks: AsyncIterable<Uint8Array>): Promise<number> {
  // The name is not a literal, because bundlers for browsers would try to resolve it.
  const moduleName = 'node:fs/promises'
  const files = (await import(moduleName)) as FileSystem
  const unfinished = `${path}.${Math.random().toString(36).slice(2, 10)}.part`
  const file = await files.open(unfinished, 'wx')
  let bytes = 0
  try {
    try {
      for await (const chunk of chunks) {
        bytes += chunk.length
        for (let written = 0; written < chunk.length;) {
          written += (await file.write(chunk.subarray(written))).bytesWritten
        }
      }
    } finally {
      await file.close()
    }
    await files.rename(unfinished, path)
    return bytes
  } catch (error) {
    await files.rm(unfinished, { force: true })
    throw error
  }
}
