// Whether a request is small by its plan: by the rows and files that it would read, whatever it returns. The threads of
// small requests leave the others to those that are for bulk work.

import type { RecordRequest } from './record-context.ts'

/** A month of one market has 43,200 minutes. */
const SMALL_ROWS_READ_MAX = 100_000
const SMALL_FILES_READ_MAX = 64

/** Thrown where a small request was expected and the plan says otherwise: nothing of it was read. */
export class RequestMisplaced extends Error {}

/** @throws {RequestMisplaced} in a thread for small requests */
export function assertInPlace({ isSmallExpected }: RecordRequest, rows: number, files: number): void {
  if (isSmallExpected !== true) return
  if (rows > SMALL_ROWS_READ_MAX || files > SMALL_FILES_READ_MAX)
    throw new RequestMisplaced(`about ${rows} rows of ${files} files are read`)
}
