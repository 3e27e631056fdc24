// The manifest of a date: which raw segments it has, and what was derived from them.

import type { LobSource } from '../../shared/lob-sources.ts'

/** One segment as the manifest lists it. */
export interface ManifestSegment {
  readonly name: string
  /** Lines without the header. */
  readonly lines: number
  /** The earliest and the latest receive time, ns. */
  readonly firstTs: bigint | undefined
  readonly lastTs: bigint | undefined
}

export interface DateManifest {
  readonly source: LobSource
  readonly date: string
  /** Segments of lower epochs do not count: --replace, --no-keep-raw and --keep-raw raise it. */
  readonly epoch: number
  /** The version of the fold that derived the date's files. */
  readonly fold: number
  /** By name. */
  readonly segments: readonly ManifestSegment[]
  /** Digests of the states that the fold began and ended with. */
  readonly opening: string | null
  readonly closing: string | null
}

/** A manifest that cannot be read. The message names file, reason and remedy. */
export class DamagedManifestError extends Error {
  constructor(path: string, reason: string, cause?: unknown) {
    super(
      `Manifest ${path} cannot be read: ${reason}. Restore it from object storage, or remove it and run \`bookcast rebuild\`.`,
      { cause },
    )
    this.name = 'DamagedManifestError'
  }
}

/** `undefined` where there is none. @throws {DamagedManifestError} */
export declare function readManifest(
  lake: string,
  source: LobSource,
  date: string,
): Promise<DateManifest | undefined>

/** Replaces the date's manifest. */
export declare function writeManifest(lake: string, manifest: DateManifest): Promise<void>

export declare function manifestText(manifest: DateManifest): string
/** @throws {DamagedManifestError} that calls the manifest `name` */
export declare function parseManifest(name: string, text: string): DateManifest

/** The names of a date's segments on the disk, sorted. */
export declare function segmentsOnDisk(lake: string, source: LobSource, date: string): Promise<string[]>

/** The dates that have raw segments or a manifest, sorted. */
export declare function rawDates(lake: string, source: LobSource): Promise<string[]>

/** The segments of both, by name. */
export declare function unionOfSegments(
  a: readonly ManifestSegment[],
  b: readonly ManifestSegment[],
): ManifestSegment[]

/**
 * Which of two manifests of a date describes the files that count: the one with the higher epoch, then with the higher
 * version of the fold, then with all segments of the other and more. `union`: the segments of both must be folded.
 */
export declare function standsAbove(a: DateManifest, b: DateManifest): 'a' | 'b' | 'equal' | 'union'
