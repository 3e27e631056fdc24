// A real file system of a few megabytes that a test can fill, because simulated faults do not show what a full disk does. Mounting
// needs privileges; without them, the test is skipped with a message.

import { execFile } from 'node:child_process'
import { mkdtemp, open, rm, rmdir, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const FILL_BYTES = 64 * 1024
const FILLER = '.filler'

export interface SmallDisk {
  readonly path: string
  /** Uses up every remaining byte. */
  fill(): Promise<void>
  /** Frees the filled space, or this many bytes of it. */
  free(bytes?: number): Promise<void>
}

/** Runs `work` on a new file system; skips the test with a message if it cannot be mounted. */
export async function onSmallDisk(
  t: TestContext,
  sizeMib: number,
  work: (disk: SmallDisk) => Promise<void>,
): Promise<void> {
  const path = await mkdtemp(join(tmpdir(), 'bookcast-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMib}m`, 'bookcast-test', path])
  } catch {
    await rmdir(path)
    t.skip('a small file system can only be mounted by root')
    return
  }
  try {
    await work(diskAt(path))
  } finally {
    await run('umount', ['--lazy', path])
    await rmdir(path)
  }
}

function diskAt(path: string): SmallDisk {
  return {
    path,
    async fill() {
      const file = await open(join(path, FILLER), 'a')
      try {
        for (let bytes = FILL_BYTES; bytes >= 1;) {
          const written = await file.write(Buffer.alloc(bytes, 1)).catch(noSpace)
          // Fills the last page in ever smaller pieces.
          if (written === undefined || written.bytesWritten < bytes) bytes = Math.floor(bytes / 2)
        }
      } finally {
        await file.close()
      }
    },
    async free(bytes) {
      const filler = join(path, FILLER)
      if (bytes === undefined) await rm(filler)
      else await truncate(filler, (await stat(filler)).size - bytes)
    },
  }
}

function noSpace(error: unknown): undefined {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
}
