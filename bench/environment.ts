// The environment of a measurement: figures are not comparable without it.

import { execFile } from 'node:child_process'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Environment } from './report.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export async function readEnvironment(): Promise<Environment> {
  return {
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown processor',
    cpuCount: cpus().length,
    memoryGb: Math.round(totalmem() / 1e9),
    platform: `${process.platform}-${process.arch}`,
    commit: await commit(),
  }
}

/** The commit of the checkout, marked if files have changed since; `unknown` outside a checkout. */
async function commit(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('git', ['describe', '--always', '--dirty', '--abbrev=12'], {
      cwd: ROOT,
    })
    return stdout.trim()
  } catch {
    return 'unknown'
  }
}
