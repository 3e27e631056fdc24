// Figures of a lake's order-book files: how many are samples, and how old the newest books are. Only footers are read, each
// once. The two open dates are checked every 10 s, all dates every 30th time.

import { stat } from 'node:fs/promises'
import type { Logger } from 'pino'
import { identityOf } from '../../shared/file-identity.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { NS_PER_MS, addDays, utcDateOf } from '../../shared/utc-date.ts'
import { withinTime } from '../../shared/within-time.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { seriesDates } from '../lake/series-dates.ts'
import { RepeatedTurns } from '../tasks/repeated-turns.ts'

export interface LakeBooksFigures {
  /** Order-book files with sample data. */
  readonly sampleCount: number
  /** The end of the newest coverage of each source's files, ms since the epoch; sources without files are left out. */
  readonly coveredToMs: Readonly<Record<string, number>>
}

interface KnownFile {
  readonly identity: string
  readonly isSample: boolean
  readonly coveredToMs: number | null
}

const INTERVAL_MS = 10_000
const ALL_EVERY_ROUNDS = 30
const FILES_MAX = 1_000_000

export class LakeBooks extends RepeatedTurns {
  readonly #lake: string
  readonly #logger: Logger
  /** The footers read so far, by path. */
  readonly #known = new Map<string, KnownFile>()
  #figures: LakeBooksFigures = { sampleCount: 0, coveredToMs: {} }
  #first: Promise<void> | undefined
  #rounds = 0

  constructor(lake: string, logger: Logger) {
    super(INTERVAL_MS)
    this.#lake = lake
    this.#logger = logger
  }

  get figures(): LakeBooksFigures {
    return this.#figures
  }

  /** The figures after the first look, or after the timeout. */
  async firstFigures(timeoutMs: number): Promise<LakeBooksFigures> {
    await withinTime(this.#first ?? Promise.resolve(), timeoutMs)
    return this.#figures
  }

  override start(): Promise<void> {
    return (this.#first = super.start())
  }

  protected override async take(signal: AbortSignal): Promise<void> {
    try {
      await this.#look(signal)
    } catch (error) {
      if (!signal.aborted) this.#logger.warn({ err: error }, 'cannot read the order books of the lake')
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const today = utcDateOf(Date.now())
    const openDates = new Set([today, addDays(today, -1)])
    const isAll = this.#rounds++ % ALL_EVERY_ROUNDS === 0
    const seen = new Set<string>()
    const coveredToMs: Record<string, number> = {}
    for await (const { source, series, dates } of seriesDates(this.#lake)) {
      for (const date of dates) {
        signal.throwIfAborted()
        if (seen.size === FILES_MAX) break
        const path = lobFilePath(this.#lake, source, series, date)
        seen.add(path)
        const isOpen = openDates.has(date)
        const file =
          isAll || isOpen || !this.#known.has(path) ? await this.#read(path) : this.#known.get(path)
        const toMs = file?.coveredToMs ?? null
        if (toMs !== null && toMs > (coveredToMs[source] ?? 0)) coveredToMs[source] = toMs
      }
    }
    for (const path of this.#known.keys()) if (!seen.has(path)) this.#known.delete(path)
    const sampleCount = [...this.#known.values()].filter(({ isSample }) => isSample).length
    if (sampleCount > 0 && sampleCount !== this.#figures.sampleCount) {
      this.#logger.warn(
        { files: sampleCount, lake: this.#lake },
        'the lake holds samples: invented order books',
      )
    }
    this.#figures = { sampleCount, coveredToMs }
  }

  async #read(path: string): Promise<KnownFile | undefined> {
    const found = await stat(path, { bigint: true }).catch(() => undefined)
    if (found === undefined) return undefined
    const identity = identityOf(found)
    const known = this.#known.get(path)
    if (known?.identity === identity) return known
    const facts = await lakeFileFacts(path).catch(() => undefined)
    const toTs = facts?.coverage?.toTs
    const file = {
      identity,
      isSample: facts?.isSample ?? false,
      coveredToMs: toTs === undefined ? null : Number(toTs / NS_PER_MS),
    }
    this.#known.set(path, file)
    return file
  }
}
