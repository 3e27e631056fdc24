// Where the real recordings are. They are no part of the project, so a test that needs them is skipped without them.

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The path of a recording, or undefined when the recordings are not on this machine. */
export function realDataPath(...parts: readonly string[]): string | undefined {
  const root = process.env['BOOKCAST_REAL_DATA'] ?? findUpwards(import.meta.dirname)
  const path = root === undefined ? undefined : join(root, ...parts)
  return path !== undefined && existsSync(path) ? path : undefined
}

function findUpwards(from: string): string | undefined {
  const candidate = join(from, 'shared', 'real-data')
  if (existsSync(candidate)) return candidate
  const parent = dirname(from)
  return parent === from ? undefined : findUpwards(parent)
}
