// Splits a raw query string into decoded names and values, including repeats. It checks only the encoding; the parameter
// parser decides which names and values are valid.

export interface QueryEntry {
  readonly name: string
  readonly value: string
}

export interface SplitQuery {
  readonly entries: readonly QueryEntry[]
  /** Raw pieces (`name=value` as sent) whose percent-encoding is not UTF-8. */
  readonly malformed: readonly string[]
}

/** After this many malformed pieces the rest is skipped: each costs an exception, and the request is refused anyway. */
const MALFORMED_MAX = 100

/** The text with `+` as space and percent-encoding decoded, or `undefined` if it is malformed. */
function decodeComponent(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** Splits the part of a request target after its `?`; empty pieces (`a=1&&b=2`) are skipped. */
export function splitQuery(raw: string): SplitQuery {
  const entries: QueryEntry[] = []
  const malformed: string[] = []
  for (const piece of raw.split('&')) {
    if (piece === '') continue
    if (malformed.length >= MALFORMED_MAX) break
    const equals = piece.indexOf('=')
    const name = decodeComponent(equals === -1 ? piece : piece.slice(0, equals))
    const value = decodeComponent(equals === -1 ? '' : piece.slice(equals + 1))
    if (name === undefined || value === undefined) malformed.push(piece)
    else entries.push({ name, value })
  }
  return { entries, malformed }
}
