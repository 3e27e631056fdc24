// Reads raw segments. What a segment holds is its name: the content is compared with it at the end.

import type { SegmentHeader, SegmentLine } from './segment-lines.ts'

/** A segment that cannot be used. The message names file, reason and remedy. */
export class DamagedSegmentError extends Error {
  readonly path: string

  constructor(path: string, reason: string, cause?: unknown) {
    super(
      `Segment ${path} is damaged: ${reason}. Restore it from object storage, or remove it and run \`bookcast rebuild\`.`,
      { cause },
    )
    this.name = 'DamagedSegmentError'
    this.path = path
  }
}

export interface SegmentReaderOptions {
  readonly signal?: AbortSignal
}

/**
 * The lines of a segment in batches; the first line of the first batch is the header. Whether the content is what the name
 * says is known at the end only: use what was read after the last batch, or call `verifySegment` before.
 * @throws {DamagedSegmentError}
 */
export declare function readSegment(
  path: string,
  options?: SegmentReaderOptions,
): AsyncGenerator<readonly SegmentLine[]>

/** The header alone. @throws {DamagedSegmentError} */
export declare function readSegmentHeader(path: string): Promise<SegmentHeader>

/** Reads a segment as a whole, without keeping it. @throws {DamagedSegmentError} */
export declare function verifySegment(path: string, options?: SegmentReaderOptions): Promise<void>
