// The files of the version that a request for records is pinned to, and the refusal of ranges with rows that are in no version
// because the relational store still has them.

import { ApiError } from '../../shared/errors.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import { periodInstants, RECORD_PARTITIONS, recordFileName } from '../../shared/lake-layout.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { PinnedFiles } from '../lake/pinned-files.ts'
import { isCovered } from './lake-cover.ts'
import { inOrder, type LakePart, lakeScopes, type PartSelection, periodsOf } from './lake-partitions.ts'

interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** The files of a version that overlap a span, by scope and period. @throws {ApiError} `version_gone` */
export function pinnedParts(pinned: PinnedFiles, selection: PartSelection): LakePart[] {
  const { dataset, fromMs, toMs } = selection
  const parts: LakePart[] = []
  for (const scope of (selection.scopes ?? lakeScopes('', dataset, pinned)).filter(isSeriesName)) {
    const directory = `${dataset}/${RECORD_PARTITIONS[dataset].scope}=${scope}`
    for (const period of periodsOf(dataset, pinned.namesIn(directory))) {
      const span = periodInstants(period)
      if (span.fromMs >= toMs || span.toMs <= fromMs) continue
      const part = pinnedPart(pinned, recordFileName(dataset, scope, period), scope, span)
      if (part !== undefined) parts.push(part)
    }
  }
  return inOrder(parts)
}

/** A file of a version. It is served up to the cut-over in the version, or else, like any unlisted file, up to its last row. */
export function pinnedPart(
  pinned: PinnedFiles,
  key: string,
  scope: string,
  { fromMs, toMs }: Span,
): LakePart | undefined {
  const file = pinned.find(key)
  if (file === undefined) return undefined
  const { path, place: name, sha256, stat, coldToMs } = file
  return {
    scope,
    name,
    path,
    fromMs,
    toMs: coldToMs ?? toMs,
    isRegistered: coldToMs !== null,
    revisionMin: 0n,
    identity: identityOf(stat),
    sha256,
  }
}

/**
 * Refuses a range that ends after all files of the version, or that has rows where the version has no file. An answer that
 * names the version may have taken these rows from the store, which still has them or has moved them to a new file.
 * @param countHot counts the store's rows in the range, up to one
 * @param presentParts returns the lake's present files that overlap the range
 * @throws {ApiError} `not_pinnable`
 */
export async function refuseNotPinnable(
  noun: string,
  parts: readonly LakePart[],
  { scopes, fromMs, toMs }: Span & Pick<PartSelection, 'scopes'>,
  countHot: () => Promise<number>,
  presentParts: () => Promise<readonly LakePart[]>,
): Promise<void> {
  if (isCovered(parts, scopes, fromMs, toMs)) return
  const ends = [...groupedBy(parts, ({ scope }) => scope).values()].map((own) =>
    own.reduce((end, part) => Math.max(end, part.toMs), fromMs),
  )
  const endMs = parts.length === 0 ? fromMs : Math.min(toMs, ...ends)
  const isNew = (part: LakePart): boolean =>
    !isCovered(parts, [part.scope], Math.max(part.fromMs, fromMs), Math.min(part.toMs, toMs))
  if (Math.max(...ends) >= toMs && (await countHot()) === 0 && !(await presentParts()).some(isNew)) return
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
