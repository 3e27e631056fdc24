// How many file descriptors the process may have, so that connections leave some for files, databases and stores: a
// database that gets none ends the whole process.

import { readFileSync } from 'node:fs'

/** Descriptors that connections of clients never take. */
export const DESCRIPTORS_RESERVED = 256
/** Where the system does not tell. */
const DESCRIPTORS_ASSUMED = 1_024

/** The process's soft limit; at least a few more than are reserved. */
export function descriptorsMax(): number {
  let limit = DESCRIPTORS_ASSUMED
  try {
    const [, text = ''] =
      /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    limit = text === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(text)
  } catch {
    // Linux alone has the file.
  }
  return Math.max(limit, DESCRIPTORS_RESERVED + 16)
}
