// The status file of a recorder beside its log, for `bookcast status` and for operators. It does not depend on the process that
// runs the recorder, and remains after the recorder has stopped.

import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { lobSources, type LobSource } from '../../shared/lob-sources.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import type { RecorderMetrics } from './recorder-metrics.ts'

export interface RecorderStatus extends RecorderMetrics {
  readonly pid: number
  readonly host: string
  /** When the figures were taken, ms since the epoch. */
  readonly atMs: number
}

/** Never rejects: a full disk must not end a recording because its status cannot be written. */
export async function writeRecorderStatus(workDirectory: string, metrics: RecorderMetrics): Promise<void> {
  const status: RecorderStatus = { ...metrics, pid: process.pid, host: hostname(), atMs: Date.now() }
  const path = statusPath(workDirectory, metrics.source)
  try {
    await writeFile(`${path}.new`, JSON.stringify(status))
    await rename(`${path}.new`, path)
  } catch {
    await rm(`${path}.new`, { force: true }).catch(() => {})
  }
}

/** The status of each exchange that was recorded with the work directory, if its file can be read. */
export async function readRecorderStatus(workDirectory: string): Promise<readonly RecorderStatus[]> {
  const found: RecorderStatus[] = []
  for (const source of lobSources()) {
    const status = parsedJson(await readFile(statusPath(workDirectory, source), 'utf8').catch(() => ''))
    // There is no file, or its writer was killed.
    if (status !== undefined) found.push(status as RecorderStatus)
  }
  return found
}

function statusPath(workDirectory: string, source: LobSource): string {
  return join(workDirectory, `${source}-status.json`)
}
