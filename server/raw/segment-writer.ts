// Writes one raw segment.

import type { LobSource } from '../../shared/lob-sources.ts'
import type { SegmentHeader } from './segment-lines.ts'

/** What is known of a segment that was written. */
export interface SegmentFacts {
  readonly source: LobSource
  readonly date: string
  /** The file's name, which is its content's. */
  readonly name: string
  readonly path: string
  /** The UTC hour, 0 to 23. */
  readonly hour: number
  readonly recorder: string
  /** Lines without the header. */
  readonly lines: number
  /** The earliest and the latest receive time, ns; `undefined` where no line has one. */
  readonly firstTs: bigint | undefined
  readonly lastTs: bigint | undefined
  /** Bytes of the compressed file. */
  readonly bytes: number
}

/** Where a segment belongs. */
export interface SegmentPlace {
  readonly date: string
  /** 0 to 23. */
  readonly hour: number
  /** `import`, or the recorder's name. */
  readonly recorder: string
}

/** A segment that is complete on the disk under a temporary name. */
export interface StagedSegment {
  readonly facts: SegmentFacts
  /** Whether the lake has it already. */
  readonly isPresent: boolean
  /** Gives it its name. */
  publish(): Promise<void>
  /** Removes the temporary file. */
  discard(): Promise<void>
}

/** Streams lines into a temporary file. After an error only `discard` may be called. */
export declare class SegmentWriter {
  /** Makes the directories that are missing. */
  static open(lake: string, header: SegmentHeader): Promise<SegmentWriter>
  /** Adds one line (text of segment-lines.ts, without a newline). When it returns `true`, await `drained()` before the next. */
  add(text: string, recvTs: bigint | undefined): boolean
  drained(): Promise<void>
  /** Lines added so far. */
  readonly lines: number
  /** Syncs the file, and leaves it under its temporary name. */
  stage(place: SegmentPlace): Promise<StagedSegment>
  /** Stages and publishes. */
  finish(place: SegmentPlace): Promise<SegmentFacts>
  /** Removes the temporary file. Does nothing after `stage` or `finish`. */
  discard(): Promise<void>
}
