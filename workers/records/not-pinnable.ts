// The refusal of pinned requests for ranges with rows that are in no version because the relational store still has them.

import { ApiError } from '../../shared/errors.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import type { RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import { isCovered } from './lake-cover.ts'
import { findParts, type LakePart, type PartSelection } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'

interface PinnedPlan {
  readonly parts: readonly LakePart[]
  readonly manifest: readonly RegisteredPartition[]
}

/**
 * Refuses a range that ends after all files of the version, or that has rows where the version has no file. An answer that
 * names the version may have taken these rows from the store, which still has them or has moved them to a new file.
 * @param countHot counts the store's rows in the range, up to one
 * @param checked completes one of the lake's present files that overlap the range
 * @throws {ApiError} `not_pinnable`
 */
export async function refuseNotPinnable(
  noun: string,
  { parts, manifest }: PinnedPlan,
  range: PartSelection,
  { context, pinned }: RecordRequest,
  countHot: () => Promise<number>,
  checked: (part: LakePart) => Promise<LakePart>,
): Promise<void> {
  const { scopes, fromMs, toMs } = range
  if (pinned === undefined || !context.hasStore) return
  if (isCovered(parts, scopes, fromMs, toMs)) return
  const ends = [...groupedBy(parts, ({ scope }) => scope).values()].map((own) =>
    own.reduce((end, part) => Math.max(end, part.toMs), fromMs),
  )
  const endMs = parts.length === 0 ? fromMs : Math.min(toMs, ...ends)
  const isNew = (part: LakePart): boolean =>
    !isCovered(parts, [part.scope], Math.max(part.fromMs, fromMs), Math.min(part.toMs, toMs))
  if (Math.max(...ends) >= toMs && (await countHot()) === 0) {
    const present = findParts(context.lake, range, manifest).map(checked)
    if (!(await Promise.all(present)).some(isNew)) return
  }
  const firstMs = parts.reduce((first, part) => Math.min(first, part.fromMs), Infinity)
  const hint =
    parts.length === 0
      ? 'This version has none of the range.'
      : `Those from ${textOf(firstMs)} until before ${textOf(Math.max(firstMs, endMs))} can be pinned.`
  throw new ApiError(
    'not_pinnable',
    `${noun} of the range are not in files of the lake yet and cannot be pinned to a version. ${hint}`,
  )
}

function textOf(ms: number): string {
  return new Date(ms).toISOString()
}
