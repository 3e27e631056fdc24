// The part file of a date that is being recorded, and what it holds: the closed hours, as they will stand in the finished
// file, and behind them slices of the open hour, which are cut off when that closes.

import { existsSync, statSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { LobFileContents } from '../lake/lob-file-contents.ts'
import type { LobFileContentsState } from '../lake/lob-file-contents.ts'
import { StrandNumbers } from '../lake/strand-numbers.ts'
import { createPart } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

/** The closed hours, as plain data. */
export interface DatePartState {
  readonly closed: LobFileContentsState
  /** The strands that the closed hours name, in the file's order. */
  readonly strands: readonly number[]
}

/** What a file holds, to be gone on with. */
export type PartContents = Omit<OpenFile, 'file'>

export class DatePart {
  /** There from the first publication of the date to its end. */
  readonly path: string
  #closed: PartContents
  /** The closed hours and the slices. */
  #sealed: PartContents
  /** Records of the open hour that lie in slices. */
  sealedRecords = 0

  constructor(path: string, state?: DatePartState) {
    this.path = path
    this.#closed = contentsOf(state)
    this.#sealed = contentsOf(state)
  }

  state(): DatePartState {
    return stateOf(this.#closed)
  }

  /** Cuts the file back to the closed hours. False when it is not there as it was. */
  restore(): boolean {
    const { contents } = this.#closed
    if (!existsSync(this.path)) return !contents.hasRows
    try {
      if (statSync(this.path).size < contents.sizeBytes) return false
      truncateSync(this.path, contents.sizeBytes)
      return true
    } catch {
      return false
    }
  }

  get hasClosedRows(): boolean {
    return this.#closed.contents.hasRows
  }

  /** What it holds so far, to go on with in another file. */
  copy(): PartContents {
    return contentsOf(stateOf(this.#sealed))
  }

  /** Adds to the file, after cutting it back to what is sealed. */
  async append(produce: (file: OpenFile) => Promise<void>): Promise<void> {
    createPart(this.path)
    const file = await open(this.path, 'r+')
    try {
      await file.truncate(this.#sealed.contents.sizeBytes)
      await produce({ file, ...this.#sealed })
      await file.sync()
    } finally {
      await file.close()
    }
  }

  /** What is appended next stands behind the closed hours, in the place of the slices. */
  cutSlices(): void {
    this.#sealed = contentsOf(stateOf(this.#closed))
  }

  /** What is appended next is the file's beginning. */
  startAgain(): void {
    this.#sealed = contentsOf(undefined)
  }

  /** What was appended stays: it is of closed hours. */
  close(): void {
    this.#closed = contentsOf(stateOf(this.#sealed))
    this.sealedRecords = 0
  }
}

function contentsOf(state: DatePartState | undefined): PartContents {
  return { contents: new LobFileContents(state?.closed), numbers: new StrandNumbers(state?.strands) }
}

function stateOf({ contents, numbers }: PartContents): DatePartState {
  return { closed: contents.state(), strands: numbers.strands }
}
