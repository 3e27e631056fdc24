// Removes raw segments of old dates from a lake. The date is sealed: the next push removes the segments from object storage.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { rawKey } from '../../shared/lake-layout.ts'
import { type LobSource, lobSources } from '../../shared/lob-sources.ts'
import { hasFoldState } from '../fold/fold-state.ts'
import { BUSY_WAIT_MS_MAX, MergeBusy, withLock } from '../fold/series-lock.ts'
import {
  type DateManifest,
  isSealed,
  rawDates,
  readManifest,
  segmentsOnDisk,
  unlistedIn,
} from '../raw/date-manifest.ts'
import { sealDate } from '../raw/date-removal.ts'

export interface PrunedSegment {
  readonly key: string
  readonly sizeBytes: number
  /** Why the segment stays. */
  readonly reason?: string
}

/** Removes the segments of dates before `before`, or only lists them. Derived files stay. */
export async function* pruneRaw(
  lake: string,
  before: string,
  isApplied: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<PrunedSegment, void, void> {
  for (const source of lobSources()) {
    for (const date of await rawDates(lake, source)) {
      if (date >= before) break
      signal?.throwIfAborted()
      const prune = (): Promise<readonly PrunedSegment[]> => pruneDate(lake, source, date, isApplied)
      try {
        const place = { lake, source }
        yield* isApplied ? await withLock(place, { waitMs: BUSY_WAIT_MS_MAX, signal }, prune) : await prune()
      } catch (error) {
        if (!(error instanceof MergeBusy)) throw error
        yield {
          key: rawKey(source, date, ''),
          sizeBytes: 0,
          reason: `is locked: ${error.owner} writes to it`,
        }
      }
    }
  }
}

async function pruneDate(
  lake: string,
  source: LobSource,
  date: string,
  isApplied: boolean,
): Promise<readonly PrunedSegment[]> {
  const names = await segmentsOnDisk(lake, source, date)
  if (names.length === 0) return []
  const manifest = await readManifest(lake, source, date)
  const reason =
    reasonToKeep(lake, source, date, manifest, names) ??
    ((await hasFoldState(lake, manifest)) ? undefined : 'has no fold state; run `bookcast rebuild` first')
  if (reason !== undefined) return [{ key: rawKey(source, date, ''), sizeBytes: 0, reason }]
  const pruned = await Promise.all(
    names.map(async (name) => {
      const key = rawKey(source, date, name)
      return { key, sizeBytes: (await stat(join(lake, key))).size }
    }),
  )
  if (isApplied) await sealDate(lake, source, date)
  return pruned
}

/** The reason to keep the segments of a date: segments that no fold has read would be lost. */
function reasonToKeep(
  lake: string,
  source: LobSource,
  date: string,
  manifest: DateManifest | undefined,
  names: readonly string[],
): string | undefined {
  if (manifest === undefined) return `has no manifest; run \`bookcast rebuild\` first`
  const unlisted = unlistedIn(manifest, names)
  if (unlisted === undefined) return undefined
  const [state, remedy] = isSealed(manifest)
    ? ['came after its seal', 'remove it, or import everything recorded of the date with --replace']
    : ['is not folded yet', 'run `bookcast rebuild` first']
  return `holds ${join(lake, rawKey(source, date, unlisted))}, which ${state}; ${remedy}`
}
