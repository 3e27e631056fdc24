// A file that appears under its name only when it is whole. What it needs is loaded when a file is asked for, so that
// browsers never meet what they do not have.

/** What is used of node:fs/promises, which Deno and Bun have too. */
interface FileHandle {
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>
  close(): Promise<void>
}

interface FileSystem {
  open(path: string, flags: string): Promise<FileHandle>
  rename(from: string, to: string): Promise<void>
  rm(path: string, options: { readonly force: boolean }): Promise<void>
}

/** Writes the chunks and gives how many bytes they were; what was written goes when one of them cannot be had. */
export async function writeWhole(path: string, chunks: AsyncIterable<Uint8Array>): Promise<number> {
  // Not a literal: bundlers for browsers would look for it.
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
