// Whether a request is small. The rows and files that its plan reads decide, not the rows that it returns. Threads for small
// requests pass others on to the threads for bulk requests.

import type { RecordRequest } from './record-context.ts'

/** A month of one market has 43,200 minutes. */
const SMALL_ROWS_READ_MAX = 100_000
const SMALL_FILES_READ_MAX = 64

/** Thrown before anything is read, if the plan of a request in a thread for small requests is not small. */
export class RequestMisplaced extends Error {}

/** @throws {RequestMisplaced} in a thread for small requests */
export function assertInPlace({ isSmallExpected }: RecordRequest, rows: number, files: number): void {
  if (isSmallExpected !== true) return
  if (rows > SMALL_ROWS_READ_MAX || files > SMALL_FILES_READ_MAX)
    throw new RequestMisplaced(`about ${rows} rows of ${files} files are read`)
}
