// Removes the raw segments of a date permanently. The manifest gets a higher epoch first, so that no sync brings them back.

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { rawDateDirectory, rawSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { removeWhileEmpty } from '../lake/empty-directories.ts'
import { isSealed, readManifest, segmentsOnDisk, unlistedIn, writeManifest } from './date-manifest.ts'

/**
 * Removes the raw segments of a date and seals it. Does nothing without a manifest, or if the date has a segment that is not folded
 * yet: a recorder publishes slices at any time. Completes a removal that was killed. Returns whether the date is sealed.
 */
export async function sealDate(lake: string, source: LobSource, date: string): Promise<boolean> {
  const names = await segmentsOnDisk(lake, source, date)
  const manifest = await readManifest(lake, source, date)
  if (manifest === undefined || unlistedIn(manifest, names) !== undefined) return false
  const isOpen = manifest.segments.length > 0
  const { epoch, segments } = manifest
  const directory = rawDateDirectory(lake, source, date)
  if (isOpen) {
    // A killed replacement has left segments. Beside a seal that does not list them, they would count as later ones.
    const listed = new Set(segments.map(({ name }) => name))
    for (const name of names) if (!listed.has(name)) await rm(join(directory, name), { force: true })
    await writeManifest(lake, { ...manifest, epoch: epoch + 1, segments: [], sealed: segments })
  } else if (!isSealed(manifest)) return false
  for (const name of names) await rm(join(directory, name), { force: true })
  return true
}

/** Removes empty directories of raw segments, which a failed import leaves behind. */
export async function removeEmptyRawDirectories(lake: string, source: LobSource): Promise<void> {
  const root = rawSourceDirectory(lake, source)
  for (const name of await readdir(root).catch(() => []))
    await removeWhileEmpty(join(root, name), join(lake, 'raw'))
  await removeWhileEmpty(root, join(lake, 'raw'))
}
