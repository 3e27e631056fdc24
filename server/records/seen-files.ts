// Checks whether files are unchanged, without blocking the event loop. An unresponsive share blocks a thread of Node's thread
// pool. So only a few checks run at once, and after a moment the files count as changed.

import { stat } from 'node:fs/promises'
import { identityOf, type SeenFile } from '../../shared/file-identity.ts'
import { withinTime } from '../../shared/within-time.ts'

const LOOKS_MAX = 2
const LOOK_MS_MAX = 50

export class SeenFiles {
  #looks = 0

  /** Resolves to whether all files exist unchanged; to false if that is not known soon. Never rejects. */
  async areUnchanged(files: readonly SeenFile[]): Promise<boolean> {
    if (this.#looks >= LOOKS_MAX) return false
    this.#looks += 1
    const look = isEachUnchanged(files).finally(() => (this.#looks -= 1))
    return (await withinTime(look, LOOK_MS_MAX)) ?? false
  }
}

async function isEachUnchanged(files: readonly SeenFile[]): Promise<boolean> {
  try {
    for (const { path, identity } of files) {
      if (identityOf(await stat(path, { bigint: true })) !== identity) return false
    }
    return true
  } catch {
    return false
  }
}
