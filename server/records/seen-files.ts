// Looks whether files are as somebody saw them, beside the event loop. A share that does not answer keeps a thread of the
// process's pool waiting, so no more than a few look at once, and whoever waits longer than a moment is not answered.

import { stat } from 'node:fs/promises'
import { identityOf, type SeenFile } from '../../shared/file-identity.ts'
import { withinTime } from '../../shared/within-time.ts'

const LOOKS_MAX = 2
const LOOK_MS_MAX = 50

export class SeenFiles {
  #looks = 0

  /** Resolves to whether all of them are there and unchanged; to false where that is not known soon. Never rejects. */
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
