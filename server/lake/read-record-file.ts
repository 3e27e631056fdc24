// Reads files of candles, observations and trades for commands. An error is one sentence with the file's name, the reason and the
// remedy.

import { open } from 'node:fs/promises'
import { messageOf } from '../../shared/error-message.ts'
import { recordFileChecksum } from '../../shared/record-file-checksum.ts'

/** Undefined if the file has no checksum. */
export async function isChecksumRight(path: string): Promise<boolean | undefined> {
  const file = await open(path)
  try {
    const checksum = await recordFileChecksum(file)
    return checksum === undefined ? undefined : checksum.stored === checksum.computed
  } finally {
    await file.close()
  }
}

/** The result of `read`. Rejects if the file's checksum is wrong: a damaged byte may decode to another value. */
export async function readRecordFile<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    if ((await isChecksumRight(path)) === false) throw new Error('its checksum is wrong')
    return await read()
  } catch (error) {
    const [reason] = messageOf(error).split('\n')
    const remedy =
      'If it is damaged or missing, remove it and pull it with "bookcast sync --lake … --from …".'
    throw new Error(`${path} cannot be read: ${reason}. ${remedy}`, { cause: error })
  }
}
