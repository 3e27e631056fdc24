// The part file of a date that is being recorded, and what it holds: the closed hours, as they will stand in the finished
// file, and behind them slices of the open hour, which are cut off when that closes.

import { existsSync, statSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { LobFileContents } from '../lake/lob-file-contents.ts'
import type { LobFileContentsState } from '../lake/lob-file-contents.ts'
import { createPart } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

/** The closed hours, as plain data. */
export interface DatePartState {
  readonly closed: LobFileContentsState
}

export class DatePart {
  /** There from the first publication of the date to its end. */
  readonly path: string
  #closed: LobFileContents
  /** The closed hours and the slices. */
  #sealed: LobFileContents
  /** Records of the open hour that lie in slices. */
  sealedRecords = 0

  constructor(path: string, state?: DatePartState) {
    this.path = path
    this.#closed = new LobFileContents(state?.closed)
    this.#sealed = new LobFileContents(state?.closed)
  }

  state(): DatePartState {
    return { closed: this.#closed.state() }
  }

  /** Cuts the file back to the closed hours. False when it is not there as it was. */
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
    return new LobFileContents(this.#sealed.state())
  }

  /** Appends to the file, after truncating it to the sealed part. */
  async append(produce: (file: OpenFile) => Promise<void>): Promise<void> {
    createPart(this.path)
    const file = await open(this.path, 'r+')
    try {
      await file.truncate(this.#sealed.sizeBytes)
      await produce({ file, contents: this.#sealed })
      await file.sync()
    } finally {
      await file.close()
    }
  }

  /** Discards the slices: the next append follows the closed hours. */
  cutSlices(): void {
    this.#sealed = new LobFileContents(this.#closed.state())
  }

  /** Keeps the appended part: its hours are closed. */
  close(): void {
    this.#closed = new LobFileContents(this.#sealed.state())
    this.sealedRecords = 0
  }
}
