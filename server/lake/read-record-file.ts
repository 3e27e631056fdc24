// Files of candles, observations and trades as commands read them: whole, or with an error of one sentence that has the file's name,
// the reason and the remedy.

import { open } from 'node:fs/promises'
import { recordFileChecksum } from '../../shared/record-file-checksum.ts'

/** Undefined where the file carries no checksum. */
export async function isChecksumRight(path: string): Promise<boolean | undefined> {
  const file = await open(path)
  try {
    const checksum = await recordFileChecksum(file)
    return checksum === undefined ? undefined : checksum.stored === checksum.computed
  } finally {
    await file.close()
  }
}

/** What `read` gives of the file. Rejects where its checksum is wrong: a damaged byte may read as another value. */
export async function readRecordFile<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    if ((await isChecksumRight(path)) === false) throw new Error('its checksum is wrong')
    return await read()
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split('\n')
    const remedy =
      'If it is damaged or missing, remove it and pull it with "bookcast sync --lake … --from …".'
    throw new Error(`${path} cannot be read: ${reason}. ${remedy}`, { cause: error })
  }
}
