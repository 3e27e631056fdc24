// The name of a recorder in its segments: random, and the same for a work directory as long as that exists.

import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { link, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isErrno } from '../../shared/errno.ts'
import { isRecorderName } from '../../shared/lake-layout.ts'
import { stageFile } from '../lake/temporary-file.ts'

const NAME_BYTES = 4

export async function recorderName(workDirectory: string): Promise<string> {
  mkdirSync(workDirectory, { recursive: true })
  const path = join(workDirectory, 'recorder-name')
  const staged = await stageFile(path, `${randomBytes(NAME_BYTES).toString('hex')}\n`)
  try {
    // The recorders of several exchanges share the directory: the first one names it.
    await link(staged, path)
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error
  } finally {
    await rm(staged, { force: true })
  }
  const name = readFileSync(path, 'utf8').trim()
  if (!isRecorderName(name)) {
    throw new Error(
      `${path} does not hold a recorder name (1 to 24 lower-case letters and digits). Remove it; a new one is created.`,
    )
  }
  return name
}
