// The part file of a date that is being recorded. It holds the closed hours as in the finished file, and after them portions of
// the open hour, which are truncated when that hour closes.

import { existsSync, statSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { LobFileContents } from '../lake/lob-file-contents.ts'
import { createPart } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

/** The closed hours, as plain data. */
type DatePartState = ReturnType<DatePart['state']>

export class DatePart {
  /** Exists from the first publication of the date to its end. */
  readonly path: string
  #closed: LobFileContents
  /** The closed hours and the portions. */
  #encoded: LobFileContents
  /** The number of records of the open hour that are in portions. */
  encodedRecords = 0

  constructor(path: string, state?: DatePartState) {
    this.path = path
    this.#closed = new LobFileContents(state?.closed)
    this.#encoded = new LobFileContents(state?.closed)
  }

  state() {
    return { closed: this.#closed.state() }
  }

  /** Cuts the file back to the closed hours. False if it is missing or too short. */
  restore(): boolean {
    const { sizeBytes, hasRows } = this.#closed
    if (!existsSync(this.path)) return !hasRows
    try {
      if (statSync(this.path).size < sizeBytes) return false
      truncateSync(this.path, sizeBytes)
      return true
    } catch {
      return false
    }
  }

  get hasClosedRows(): boolean {
    return this.#closed.hasRows
  }

  /** The content so far, to continue in another file. */
  copy(): LobFileContents {
    return new LobFileContents(this.#encoded.state())
  }

  /** Appends to the file, after truncating it to the encoded part. */
  async append(produce: (file: OpenFile) => Promise<void>): Promise<void> {
    createPart(this.path)
    const file = await open(this.path, 'r+')
    try {
      await file.truncate(this.#encoded.sizeBytes)
      await produce({ file, contents: this.#encoded })
      await file.sync()
    } finally {
      await file.close()
    }
  }

  /** Discards the portions: the next append follows the closed hours. */
  cutPortions(): void {
    this.#encoded = new LobFileContents(this.#closed.state())
  }

  /** Keeps the appended part: its hours are closed. */
  close(): void {
    this.#closed = new LobFileContents(this.#encoded.state())
    this.encodedRecords = 0
  }
}
