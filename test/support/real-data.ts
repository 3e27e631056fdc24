// The path of the real recordings, which are not part of the project; a complete workspace has them beside the checkout.

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The path of a real recording, or `undefined` if there are none: below `BOOKCAST_REAL_DATA`, or below the first `shared/real-data`
 * in a directory above the checkout.
 */
export function realDataPath(...parts: string[]): string | undefined {
  const root = process.env['BOOKCAST_REAL_DATA'] ?? searchUpwards(dirname(fileURLToPath(import.meta.url)))
  if (root === undefined) return undefined
  const path = join(root, ...parts)
  return existsSync(path) ? path : undefined
}

function searchUpwards(directory: string): string | undefined {
  const candidate = join(directory, 'shared', 'real-data')
  if (existsSync(candidate)) return candidate
  const parent = dirname(directory)
  return parent === directory ? undefined : searchUpwards(parent)
}
