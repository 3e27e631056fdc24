// How many file descriptors the process may open. Connections must leave some for files and databases: a database that
// gets no descriptor ends the whole process.

import { readFileSync } from 'node:fs'

/** Descriptors that client connections never use. */
export const DESCRIPTORS_RESERVED = 256
/** Assumed where the system does not report the limit. */
const DESCRIPTORS_ASSUMED = 1_024

/** The process's soft limit, but always a few more than are reserved. */
export function descriptorsMax(): number {
  let limit = DESCRIPTORS_ASSUMED
  try {
    const [, text = ''] =
      /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    limit = text === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(text)
  } catch {
    // Only Linux has the file.
  }
  return Math.max(limit, DESCRIPTORS_RESERVED + 16)
}
