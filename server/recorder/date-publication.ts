// Brings a series' files from the recorder into the lake. A file that somebody else wrote there is never replaced by one
// that holds less: both are merged, or, where that cannot be, the recorder's own is kept beside it.

import { rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { noneThere } from '../../shared/errno.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { isMergeRefusal, mergeLakeFile } from '../import/lake-file-merge.ts'
import { MERGE_WAIT_MS_MAX, MergeBusy, withSeries } from '../import/merge-lock.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { removeStaleTemporaries } from '../lake/temporary-file.ts'
import { coversLess, lacksStrands, lakeFileFacts } from '../lake/lake-file-facts.ts'

export interface DatePublicationOptions {
  readonly lake: string
  readonly source: LobSource
  /** Where merging spills to. */
  readonly workDirectory: string
  /** Whether the log is still read up to where an earlier process was: its file holds more for now. */
  readonly isBehind: () => boolean
  readonly onWarning: (text: string) => void
}

/**
 * `published`: the file is in the lake. `merged`: the lake has both in one, which the recorder must go on from. `kept back`:
 * the lake's file is as it was.
 */
export type PublicationOutcome = 'published' | 'merged' | 'kept back'

/** How far a file is finished: its hours are, or the date is over. `lost`: another writes to the series' files after all. */
export interface DateEnds {
  readonly isForGood?: boolean
  readonly isDateOver?: boolean
  readonly lost?: AbortSignal | undefined
}

/** How the lake's file stands to the one that comes: `contained`, or why not. */
type Comparison = 'contained' | 'has more' | { readonly refusal: string }

/** Another that merges has the series for a moment; longer is worth a word. */
const BUSY_MS_USUAL = 60_000
const REMIND_MS = 60 * 60 * 1000
/** Files of one date that wait for a decision, of recorders one after the other. */
const BESIDE_MAX = 9

export class DatePublication {
  readonly #series: string
  readonly #options: DatePublicationOptions
  /** By date: the lake's file as this process has left it. */
  readonly #published = new Map<string, string>()
  readonly #toldMs = new Map<string, number>()
  /** Dates of which nothing is kept beside the lake's file. */
  readonly #whole = new Set<string>()
  /** Since when another writes to the series' files. */
  #busySinceMs: number | undefined

  constructor(series: string, options: DatePublicationOptions) {
    this.#series = series
    this.#options = options
  }

  /** Whether the lake has a file of the date that this process has not left there. */
  async isForeign(date: string): Promise<boolean> {
    const version = await versionOf(this.#pathOf(date))
    return version !== undefined && version !== this.#published.get(date)
  }

  /**
   * Runs `publish` while nobody else writes to the series' files; false where another does. A date that is over has no
   * other time, and waits.
   */
  async alone(
    date: string,
    { isDateOver = false }: DateEnds,
    publish: (lost: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    const { lake, source } = this.#options
    const waitMs = isDateOver ? MERGE_WAIT_MS_MAX : 0
    const onWait = (owner: string): void => this.#tellBusy(date, owner)
    try {
      await withSeries({ lake, source, series: this.#series }, { waitMs, onWait }, publish)
    } catch (error) {
      if (!(error instanceof MergeBusy) || isDateOver) throw error
      this.#busySinceMs ??= performance.now()
      if (performance.now() - this.#busySinceMs > BUSY_MS_USUAL) onWait(error.owner)
      return false
    }
    this.#busySinceMs = undefined
    return true
  }

  /**
   * Gives the finished file `temporary`, in the lake's directory of the series, its name, unless the lake has something
   * that it lacks. `isDateOver`: nothing will be added to it. The caller has the series' lock; `lost` says when it has not.
   */
  async publish(
    date: string,
    temporary: string,
    { isForGood = false, isDateOver = false, lost }: DateEnds,
  ): Promise<PublicationOutcome> {
    const path = this.#pathOf(date)
    const comparison = await this.#compare(date, temporary)
    if (comparison === 'contained') {
      await this.#removeBeside(date, temporary)
      lost?.throwIfAborted()
      await rename(temporary, path)
      if (isForGood) await syncDirectory(dirname(path))
      await this.#note(date)
      return 'published'
    }
    if (this.#options.isBehind() && !isDateOver) return 'kept back'
    if (comparison !== 'has more') return await this.#keepBeside(date, temporary, comparison.refusal)
    const { lake, source, workDirectory } = this.#options
    try {
      await mergeLakeFile(
        { date, path: temporary },
        { lake, source, series: this.#series, spillDirectory: workDirectory, signal: lost },
      )
    } catch (error) {
      lost?.throwIfAborted()
      if (!isMergeRefusal(error)) throw error
      return await this.#keepBeside(date, temporary, error.message)
    }
    await this.#note(date)
    return 'merged'
  }

  /** The lake's file is from a time that the recorder has not reached: one of two clocks is wrong. */
  tellAhead(date: string, aheadNs: bigint): void {
    const seconds = aheadNs / 1_000_000_000n
    const text = `${this.#pathOf(date)} tells of times ${seconds} s ahead: what is recorded is served when they are reached`
    this.#tell(date, text)
  }

  /** The date is over: what became of its file is nobody's affair here any more. */
  async end(date: string): Promise<void> {
    // What killed recorders were writing beside it.
    await removeStaleTemporaries(dirname(this.#pathOf(date)))
    this.#published.delete(date)
    this.#toldMs.delete(date)
    this.#whole.delete(date)
  }

  async #compare(date: string, temporary: string): Promise<Comparison> {
    if (!(await this.isForeign(date))) return 'contained'
    const [own, present] = [await lakeFileFacts(temporary), await lakeFileFacts(this.#pathOf(date))]
    if (own === undefined) throw new Error(`${temporary} cannot be read back`)
    if (present === undefined) return { refusal: `${this.#pathOf(date)} is no lake file that can be read` }
    if (present.isSample) {
      this.#options.onWarning(`${this.#pathOf(date)} was a sample: what is recorded takes its place`)
      return 'contained'
    }
    const lacking = lacksStrands(own, present)
    if (lacking === undefined) return 'contained'
    if (lacking !== null) return 'has more'
    const less = coversLess(own, present)
    if (less === undefined) return 'contained'
    return { refusal: `${this.#pathOf(date)} was written without what is needed to merge more into it` }
  }

  async #keepBeside(date: string, temporary: string, reason: string): Promise<PublicationOutcome> {
    const beside = await this.#besideFor(date, temporary)
    await rename(temporary, beside)
    this.#whole.delete(date)
    this.#tell(
      date,
      `what is recorded of ${date} is not served: ${reason}. It is kept as ${beside}: give it the other's name, or ` +
        'take the other away and it follows by itself',
    )
    return 'kept back'
  }

  #tell(date: string, text: string): void {
    const toldMs = this.#toldMs.get(date)
    if (toldMs !== undefined && Date.now() - toldMs < REMIND_MS) return
    this.#toldMs.set(date, Date.now())
    this.#options.onWarning(text)
  }

  #tellBusy(date: string, owner: string): void {
    const path = this.#pathOf(date)
    this.#tell(date, `what is recorded is served when ${owner} has ended writing beside ${path}`)
  }

  async #note(date: string): Promise<void> {
    const version = await versionOf(this.#pathOf(date))
    if (version !== undefined) this.#published.set(date, version)
  }

  #pathOf(date: string): string {
    return lobFilePath(this.#options.lake, this.#options.source, this.#series, date)
  }

  /** What was kept beside and is in the finished file too is needed no more. */
  async #removeBeside(date: string, temporary: string): Promise<void> {
    if (this.#whole.has(date)) return
    let isWhole = true
    for (const path of this.#besidePaths(date)) {
      if ((await versionOf(path)) === undefined) continue
      if (await isContained(path, temporary)) await rm(path, { force: true })
      else isWhole = false
    }
    if (isWhole) this.#whole.add(date)
  }

  /** A name that is free, or of which the file is in the finished one too. */
  async #besideFor(date: string, temporary: string): Promise<string> {
    for (const path of this.#besidePaths(date)) {
      if ((await versionOf(path)) === undefined || (await isContained(path, temporary))) return path
    }
    throw new Error(`more than ${BESIDE_MAX} files of ${date} wait for a decision in ${this.#pathOf(date)}`)
  }

  /** No names that lake files have. */
  #besidePaths(date: string): string[] {
    const first = join(dirname(this.#pathOf(date)), `date=${date}.unmerged`)
    return Array.from({ length: BESIDE_MAX }, (_, index) => (index === 0 ? first : `${first}-${index + 1}`))
  }
}

async function isContained(path: string, whole: string): Promise<boolean> {
  const [own, other] = [await lakeFileFacts(whole), await lakeFileFacts(path)]
  return own !== undefined && other !== undefined && lacksStrands(own, other) === undefined
}

async function versionOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(noneThere)
  return found && `${found.size}-${found.mtimeNs}-${found.ino}`
}
