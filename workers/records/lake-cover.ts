// Whether lake files cover a span of some series or stations, or a single row.

import { groupedBy } from '../../shared/grouped-by.ts'
import type { LakePart } from './lake-partitions.ts'

/** Whether the parts of every scope cover [fromMs, toMs) without a hole; false for all scopes (null). */
export function isCovered(
  parts: readonly LakePart[],
  scopes: readonly string[] | null,
  fromMs: number,
  toMs: number,
): boolean {
  if (fromMs >= toMs) return true
  if (scopes === null) return false
  return scopes.every((scope) => {
    let coveredMs = fromMs
    const own = parts.filter((part) => part.scope === scope).toSorted((a, b) => a.fromMs - b.fromMs)
    for (const part of own) if (part.fromMs <= coveredMs && part.toMs > coveredMs) coveredMs = part.toMs
    return coveredMs >= toMs
  })
}

/** Whether a file that the manifest does not list covers a row of a scope. */
export function unregisteredCover(parts: readonly LakePart[]): (scope: string, ms: number) => boolean {
  const unregistered = groupedBy(unregisteredOf(parts), ({ scope }) => scope)
  return (scope, ms) => unregistered.get(scope)?.some((part) => part.fromMs <= ms && ms < part.toMs) === true
}

export function unregisteredOf(parts: readonly LakePart[]): LakePart[] {
  return parts.filter((part) => !part.isRegistered)
}
