// Validators of a response, as part of a source's state in the store.

import type { Validators } from '../upstream/upstream-http.ts'

/** Validators that were stored as JSON; undefined for anything else. */
export function readStoredValidators(value: unknown): Validators | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { etag, lastModified } = value as Readonly<Record<string, unknown>>
  return { etag: textOrNull(etag), lastModified: textOrNull(lastModified) }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
