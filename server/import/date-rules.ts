// Decides before anything is written whether an import may add to its dates or replace them, and how each date is folded.

import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { lobFilePath, rawDateDirectory, rawKey } from '../../shared/lake-layout.ts'
import { lobSourceNames } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { DateRule } from '../fold/fold-order.ts'
import { readFoldState } from '../fold/fold-state.ts'
import type { FoldState } from '../fold/fold-state.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { seriesDates } from '../lake/series-dates.ts'
import { isSealed, readManifest, segmentsOnDisk } from '../raw/date-manifest.ts'
import type { DateManifest } from '../raw/date-manifest.ts'

/** Files or segments that an error names. */
const NAMED_MAX = 5

export interface DatesToFold {
  readonly lake: string
  readonly source: LobSource
  readonly replace: boolean
  readonly nowMs?: (() => number) | undefined
}

/** A date that takes no further messages. The error names the date and the remedy. */
export class ClosedDateError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ClosedDateError'
  }
}

/**
 * The fold rule of each date that has one of `segments`.
 * @throws {ClosedDateError} for dates that cannot be added to
 */
export async function dateRules(
  { lake, source, replace, nowMs = Date.now }: DatesToFold,
  segments: readonly { readonly date: string; readonly name: string }[],
): Promise<ReadonlyMap<string, DateRule>> {
  const added = new Map<string, string[]>()
  for (const { date, name } of segments) added.set(date, [...(added.get(date) ?? []), name])
  const files = await recordedFiles(lake, source, new Set(added.keys()))
  const rules = new Map<string, DateRule>()
  for (const [date, names] of added) {
    const manifest = await readManifest(lake, source, date)
    const series = files.get(date) ?? []
    if (replace) {
      // Files that were pruned may be in object storage, and a push of the replacement would remove them there.
      const state = await readFoldState(rawDateDirectory(lake, source, date))
      const pruned = state?.series ?? (series.length === 0 ? seriesOfChains(source, state) : [])
      const requiredSeries = [...new Set([...series, ...pruned])].toSorted()
      // Of the replacements in several lakes the latest counts.
      const replacedBy = Math.max((manifest?.epoch ?? 0) + 1, nowMs())
      rules.set(date, { added: names, replacedBy, requiredSeries })
      continue
    }
    if (manifest !== undefined) await refuseMissing(lake, manifest)
    // Segments without a manifest: an import was killed while it published.
    else if ((await segmentsOnDisk(lake, source, date)).length === 0)
      refuseOldFiles(lake, source, date, series)
    rules.set(date, { added: names })
  }
  return rules
}

/** The series of all markets that a date's messages name: the state of an earlier version does not say which have files. */
function seriesOfChains(source: LobSource, state: FoldState | undefined): readonly string[] {
  const { seriesOf } = lobSourceNames(source)
  return state?.chains.flatMap(({ markets }) => markets.map(seriesOf)) ?? []
}

/** The series that have a file of a date, except those whose files are samples. */
async function recordedFiles(
  lake: string,
  source: LobSource,
  wanted: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const files = new Map<string, string[]>()
  for await (const one of seriesDates(lake)) {
    if (one.source !== source) continue
    for (const date of one.dates.filter((name) => wanted.has(name))) {
      const path = lobFilePath(lake, source, one.series, date)
      if (!existsSync(path)) continue
      const facts = await lakeFileFacts(path)
      if (facts?.isSample !== true) files.set(date, [...(files.get(date) ?? []), one.series])
    }
  }
  return files
}

function refuseOldFiles(lake: string, source: LobSource, date: string, series: readonly string[]): void {
  if (series.length === 0) return
  const paths = series.map((name) => relative(lake, lobFilePath(lake, source, name, date)))
  throw new ClosedDateError(
    `${source} ${date} cannot be added to: ${named(paths)} ${series.length === 1 ? 'was' : 'were'} written without raw ` +
      'segments, by version 0.1. Import everything recorded of the date at once with --replace.',
  )
}

async function refuseMissing(lake: string, manifest: DateManifest): Promise<void> {
  const { source, date, segments } = manifest
  if (isSealed(manifest)) {
    throw new ClosedDateError(
      `${source} ${date} is sealed: its raw segments were removed, so nothing can be added. ` +
        'Import everything recorded of the date at once with --replace.',
    )
  }
  const present = new Set(await segmentsOnDisk(lake, source, date))
  const missing = segments
    .filter(({ name }) => !present.has(name))
    .map(({ name }) => rawKey(source, date, name))
  if (missing.length === 0) return
  throw new ClosedDateError(
    `${source} ${date} cannot be added to: its manifest lists ${named(missing)}, which the lake lacks. ` +
      'Restore them from object storage, or import everything recorded of the date at once with --replace.',
  )
}

function named(names: readonly string[]): string {
  const others = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ''
  return names.slice(0, NAMED_MAX).join(', ') + others
}
