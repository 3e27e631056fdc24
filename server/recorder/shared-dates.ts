// Dates of which a recorder's lake has segments of other writers: another recorder, an import, or the rows of a 0.1 file. Their
// files are folded from all segments, in a thread, while the recorder continues to read its log. A date of this recorder alone is
// folded once, when it is over. This leaves the fold state with which the fold of a neighbouring date begins.

import { messageOf } from '../../shared/error-message.ts'
import { rawSegmentOfName } from '../../shared/lake-layout.ts'
import { NS_PER_MS, addDays } from '../../shared/utc-date.ts'
import type { FoldOrder, Folding } from '../fold/fold-order.ts'
import { hasFoldState } from '../fold/fold-state.ts'
import { RawFolder } from '../fold/raw-folder.ts'
import { readManifest, segmentsOnDisk } from '../raw/date-manifest.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { REMIND_MS } from '../../shared/limits.ts'

/** Pause before a failed fold is retried, for instance while the disk is full. */
const RETRY_MS = 20_000
/** This long after its end, all lines of a date are in slices, and a connection without a later line has paused or ended. */
const AFTER_DATE_NS = 120_000_000_000n

export interface SharedDatesOptions {
  readonly lake: string
  readonly source: LobSource
  readonly recorder: string
  readonly bounds: FoldOrder['bounds']
  readonly folding: Folding | undefined
  /** Called before a fold of the date or of a neighbouring date. */
  readonly onFold: (date: string) => Promise<void>
  readonly onWarning: (text: string) => void
}

/** A date that is folded from all its segments. One that is over is folded once more, or for the first time. */
interface SharedDate {
  /** The segments from which its files were folded. */
  folded: string | undefined
  state: 'recorded' | 'over' | 'done'
  /** Only this recorder has segments of it. */
  readonly isAlone: boolean
}

export class SharedDates {
  readonly #options: SharedDatesOptions
  readonly #dates = new Map<string, SharedDate>()
  /** Dates that are over, for which `keepOver` has run. */
  readonly #kept = new Set<string>()
  readonly #folder: RawFolder
  #folding: Promise<void> | undefined
  /** Aborts folds of dates that only this recorder has. */
  readonly #aloneStop = new AbortController()
  /** Seal epochs, by date. */
  readonly #epochs = new Map<string, number>()
  #afterMs = 0
  #warnedMs = Number.NEGATIVE_INFINITY

  constructor(options: SharedDatesOptions) {
    this.#options = options
    this.#folder = this.#newFolder()
  }

  has(date: string): boolean {
    return this.#dates.get(date)?.isAlone === false
  }

  /** Whether a fold publishes the date's files, or has done so after its end. */
  isFolded(date: string): boolean {
    return this.has(date) || this.#dates.get(date)?.state === 'done'
  }

  add(date: string): void {
    if (!this.has(date)) this.#dates.set(date, { folded: undefined, state: 'recorded', isAlone: false })
  }

  /** Adds the date if it has segments of other writers. */
  async notice(date: string): Promise<void> {
    if (this.has(date)) return
    const { lake, source } = this.#options
    const names = await segmentsOnDisk(lake, source, date)
    const isOther = names.some((name) => !this.isOwn(name))
    // A replaced date counts only segments since the replacement. The recorder's state has more.
    if (isOther || ((await readManifest(lake, source, date))?.epoch ?? 0) > 0) this.add(date)
  }

  /** Keeps the 0.1 files of a date that is over and has segments. Before that, no fold can change this date or the next one. */
  async keepOver(date: string): Promise<void> {
    const { lake, source, onFold } = this.#options
    if (this.#kept.has(date) || (await segmentsOnDisk(lake, source, date)).length === 0) return
    this.#kept.add(date)
    await onFold(date)
    if (this.has(date)) this.end(date)
  }

  /** The date is over: it is folded once more. Forgets earlier dates that are folded. */
  end(date: string): void {
    this.#dates.set(date, { folded: undefined, state: 'over', isAlone: !this.has(date) })
    for (const [other, { state }] of this.#dates)
      if (other < date && state === 'done') this.#dates.delete(other)
  }

  /** Resumes after a kill: `over` may be over and not folded yet. */
  async resume(over: string): Promise<void> {
    const { lake, source } = this.#options
    await this.notice(over)
    const manifest = await readManifest(lake, source, over)
    const listed = new Set(manifest?.segments.map(({ name }) => name))
    const names = await segmentsOnDisk(lake, source, over)
    this.end(over)
    const isFolded = names.length === 0 || (await hasFoldState(lake, manifest))
    if (isFolded && names.every((name) => listed.has(name))) this.#dates.get(over)!.state = 'done'
  }

  isOwn(name: string): boolean {
    return rawSegmentOfName(name)?.recorder === this.#options.recorder
  }

  /** Whether the date, or the one before it, was replaced: true once for each replacement. */
  async isReplaced(date: string): Promise<boolean> {
    const { lake, source } = this.#options
    let isNew = false
    for (const one of [addDays(date, -1), date]) {
      const epoch = (await readManifest(lake, source, one))?.epoch ?? 0
      isNew ||= epoch > (this.#epochs.get(one) ?? 0)
      this.#epochs.set(one, epoch)
    }
    for (const one of this.#epochs.keys()) if (one < addDays(date, -2)) this.#epochs.delete(one)
    return isNew
  }

  /**
   * Starts to fold dates that have new segments, unless that is under way: those of `open`, and those that are over. `now` is the
   * latest receive time (ns).
   */
  foldInBackground(open: readonly string[], now: bigint): void {
    if (performance.now() < this.#afterMs) return
    this.#folding ??= this.#foldAll(this.#folder, open, now).finally(() => (this.#folding = undefined))
  }

  /** Resolves when nothing is being folded. */
  async settled(): Promise<void> {
    await this.#folding
  }

  /** Folds what waits, except dates that only this recorder has: the next start folds those. */
  async close(open: readonly string[]): Promise<void> {
    this.#aloneStop.abort()
    await this.#folding
    await this.#foldAll(this.#newFolder(1), open, undefined)
  }

  /** A date that only this recorder has waits until `now` shows which connections continue after it; without `now`, it is left out. */
  async #foldAll(folder: RawFolder, open: readonly string[], now: bigint | undefined): Promise<void> {
    for (const [date, shared] of [...this.#dates].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const { state, isAlone } = shared
      if (state === 'done' || (state === 'recorded' && !open.includes(date))) continue
      if (isAlone && (now === undefined || now < endOf(date) + AFTER_DATE_NS)) continue
      try {
        await this.#fold(folder, date, shared)
      } catch (error) {
        if (isAlone && this.#aloneStop.signal.aborted) continue
        this.#afterMs = performance.now() + RETRY_MS
        const reason = messageOf(error)
        this.#options.onWarning(`${reason} The segments stay, and the recorder retries.`)
      }
    }
  }

  async #fold(folder: RawFolder, date: string, shared: SharedDate): Promise<void> {
    const { lake, source, bounds, onFold } = this.#options
    // The end of the date depends on the connections that continue after midnight.
    const both = [date, addDays(date, 1)]
    const segments = await Promise.all(both.map((one) => segmentsOnDisk(lake, source, one)))
    const dates = shared.isAlone ? [date] : both
    const names = segments.join()
    if (shared.isAlone && segments[0]!.length === 0) shared.state = 'done'
    if (names === ',' || shared.folded === names || shared.state === 'done') return
    const rules = new Map(
      dates.map((one, index) => [one, { added: segments[index]!.filter((name) => this.isOwn(name)) }]),
    )
    for (const one of dates) await onFold(one)
    const order = { source, dates, rules, bounds, keepsNext: shared.isAlone }
    const signal = shared.isAlone ? this.#aloneStop.signal : undefined
    const outcome = await folder.fold(order, signal).catch((error: unknown) => {
      const reason = messageOf(error)
      throw new Error(`Cannot fold ${source} ${date} from the segments of all recorders: ${reason}.`, {
        cause: error,
      })
    })
    if (outcome === 'later') return
    shared.folded = names
    if (shared.state === 'over') shared.state = 'done'
  }

  #newFolder(shareMax?: number): RawFolder {
    const { lake, folding, source } = this.#options
    return new RawFolder(lake, {
      ...(shareMax === undefined ? {} : { shareMax }),
      folding,
      onBusy: (owner) =>
        this.#warn(
          `${owner} is writing to the lake. The recording of ${source} is folded with the segments of others when it has finished.`,
        ),
    })
  }

  #warn(text: string): void {
    if (performance.now() - this.#warnedMs < REMIND_MS) return
    this.#warnedMs = performance.now()
    this.#options.onWarning(text)
  }
}

/** The end of a UTC date, ns. */
function endOf(date: string): bigint {
  return BigInt(Date.parse(addDays(date, 1))) * NS_PER_MS
}
