// The raw segments of a recorder. Received lines go to a slice, which is a segment of some seconds. When an hour is closed, its
// slices become one segment. A line is identified by its connection and number, so a slice beside that segment does no harm.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../shared/error-message.ts'
import { rawDateDirectory, rawSegmentOfName, rawSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { HOURS_PER_DAY, MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { MergeBusy, withLock } from '../fold/series-lock.ts'
import { FOLD_STATE_NAME } from '../fold/fold-state.ts'
import { removeStaleTemporaries } from '../lake/temporary-file.ts'
import { readManifest, segmentsOnDisk, writeManifest } from '../raw/date-manifest.ts'
import type { ManifestSegment } from '../raw/date-manifest.ts'
import { readSegmentTexts } from '../raw/segment-reader.ts'
import { SegmentWriter } from '../raw/segment-writer.ts'
import type { SegmentFacts } from '../raw/segment-writer.ts'

/** A slice is written this long after its first line, or at this many characters. It is in the lake within 20 s. */
const SLICE_MS = 15_000
const SLICE_CHARACTERS_MAX = 16 * 1024 * 1024
const RETRY_MS = 20_000
const PLACE = /^\{(?:"recv_ts":"(\d+)",)?(?:"connection":"([^"\\]*)","n":(\d+),)?/

export interface RawHoursOptions {
  readonly lake: string
  readonly source: LobSource
  readonly recorder: string
  /** Whether a date's files and manifest come from folds. */
  readonly isShared: (date: string) => boolean
  /** Whether a date has raw segments. */
  readonly hasRaw: (date: string) => boolean
  /** Called before a segment of a date is written. */
  readonly onDate: (date: string) => Promise<void>
  /** Called when a closed hour (since the epoch) is one segment, under the lock of the source. */
  readonly onUnited?: (hour: number) => Promise<void>
  readonly onWarning: (text: string) => void
}

interface PendingLine {
  readonly text: string
  readonly recvTs: bigint
}

export class RawHours {
  readonly #options: RawHoursOptions
  /** By hour since the epoch: lines that are in no segment yet. */
  readonly #pending = new Map<number, PendingLine[]>()
  #characters = 0
  #firstMs = 0
  /** Segments written by this process, by name. */
  readonly #written = new Map<string, SegmentFacts>()
  /** By date: the names of this recorder's segments that the manifest lists. */
  readonly #listed = new Map<string, string>()
  readonly #waiting = new Set<number>()
  #uniting: Promise<void> | undefined
  #uniteAfterMs = 0

  constructor(options: RawHoursOptions) {
    this.#options = options
  }

  /** Adds a line of an hour (since the epoch). */
  add(hour: number, text: string, recvTs: bigint): void {
    if (this.#characters === 0) this.#firstMs = performance.now()
    this.#characters += text.length
    const lines = this.#pending.get(hour)
    if (lines === undefined) this.#pending.set(hour, [{ text, recvTs }])
    else lines.push({ text, recvTs })
  }

  /** Whether a slice is due. A date gets its first one at once: files without raw segments count as those of version 0.1. */
  get isDue(): boolean {
    if (this.#characters === 0) return false
    if ([...this.#pending.keys()].some((hour) => !this.#options.hasRaw(dateOfHour(hour)))) return true
    return this.#characters > SLICE_CHARACTERS_MAX || performance.now() - this.#firstMs >= SLICE_MS
  }

  /** Writes the lines since the last slice. Lines that cannot be written stay pending. */
  async flush(): Promise<void> {
    for (const [hour, lines] of this.#pending) {
      await this.#options.onDate(dateOfHour(hour))
      await this.#write(hour, async (writer) => {
        for (const { text, recvTs } of lines) {
          writer.add(text, recvTs)
          if (writer.isFull) await writer.drained()
        }
      })
      this.#pending.delete(hour)
    }
    this.#characters = 0
  }

  /** Removes temporary files of killed recorders. Finds the hours, of the 24 before `hour`, whose slices are not united. */
  async resume(hour: number): Promise<void> {
    const { lake, source } = this.#options
    await removeStaleTemporaries(rawSourceDirectory(lake, source))
    for (let before = hour - HOURS_PER_DAY; before < hour; before++)
      if ((await this.#namesOf(before)).length > 1) this.#waiting.add(before)
  }

  /** An hour is closed and flushed: its slices become one segment. */
  unite(hour: number): void {
    this.#waiting.add(hour)
  }

  /** Starts to unite the slices of the waiting hours, unless that is under way. */
  uniteInBackground(): void {
    if (this.#waiting.size === 0 || this.#uniting !== undefined || performance.now() < this.#uniteAfterMs)
      return
    this.#uniting = this.#uniteAll().finally(() => {
      this.#uniting = undefined
    })
  }

  /** Resolves when no slices are being united. */
  async settled(): Promise<void> {
    await this.#uniting
  }

  /**
   * Lists this recorder's segments in the date's manifest. Call it when the files that are derived from them are in the lake.
   * @param waitMs how long to wait for the lock of the source; without the lock, a later call lists them
   */
  async listSegments(date: string, fold: number, waitMs: number): Promise<void> {
    const { lake, source } = this.#options
    const written = (): SegmentFacts[] => [...this.#written.values()].filter((facts) => facts.date === date)
    let names = namesOf(written())
    // An hour whose slices are being united is listed afterwards.
    if (names === (this.#listed.get(date) ?? '') || this.#uniting !== undefined) return
    try {
      await withLock({ lake, source }, { waitMs }, async () => {
        const own = written()
        names = namesOf(own)
        await this.#list(date, own, fold)
      })
    } catch (error) {
      if (error instanceof MergeBusy) return
      throw error
    }
    this.#listed.set(date, names)
  }

  /** The date is over, and each of its hours is one segment. */
  forgetDate(date: string): void {
    for (const [name, facts] of this.#written) if (facts.date === date) this.#written.delete(name)
    this.#listed.delete(date)
  }

  async #list(date: string, added: readonly SegmentFacts[], fold: number): Promise<void> {
    const { lake, source } = this.#options
    const before = await readManifest(lake, source, date)
    const isOther = ({ name }: ManifestSegment): boolean =>
      rawSegmentOfName(name)?.recorder !== this.#options.recorder
    // Another writer has changed the date since: the next publication folds it.
    if (before !== undefined && (before.epoch > 0 || before.segments.some(isOther))) return
    const listed = new Map((before?.segments ?? []).map((segment) => [segment.name, segment]))
    for (const facts of added) listed.set(facts.name, facts)
    // The state of a fold of fewer segments is no longer valid.
    await rm(join(rawDateDirectory(lake, source, date), FOLD_STATE_NAME), { force: true })
    await writeManifest(lake, {
      ...(before ?? { source, date, epoch: 0 }),
      fold,
      segments: [...listed.values()],
      opening: null,
      closing: null,
    })
  }

  async #write(hour: number, fill: (writer: SegmentWriter) => Promise<void>): Promise<SegmentFacts> {
    const { lake, source, recorder } = this.#options
    const place = { date: dateOfHour(hour), hour: hour % HOURS_PER_DAY, recorder }
    const facts = await SegmentWriter.write(lake, { source, recorder }, place, fill)
    this.#written.set(facts.name, facts)
    return facts
  }

  /** This recorder's segments of an hour. */
  async #namesOf(hour: number): Promise<string[]> {
    const { lake, source, recorder } = this.#options
    const names = await segmentsOnDisk(lake, source, dateOfHour(hour))
    return names.filter((name) => {
      const segment = rawSegmentOfName(name)!
      return segment.recorder === recorder && segment.hour === hour % HOURS_PER_DAY
    })
  }

  async #uniteAll(): Promise<void> {
    for (const hour of [...this.#waiting].toSorted((a, b) => a - b)) {
      try {
        if (await this.#uniteAlone(hour)) this.#waiting.delete(hour)
      } catch (error) {
        this.#uniteAfterMs = performance.now() + RETRY_MS
        if (error instanceof MergeBusy) return
        const reason = messageOf(error)
        const at = new Date(hour * MS_PER_HOUR).toISOString().slice(0, 13)
        this.#options.onWarning(
          `Cannot write the raw segment of hour ${at}: ${reason}. The slices and the log stay, and the recorder retries.`,
        )
        return
      }
    }
  }

  /** Unites slices under the source's lock, so that no fold reads them meanwhile. False if some slices are not folded yet. */
  async #uniteAlone(hour: number): Promise<boolean> {
    const { lake, source } = this.#options
    return await withLock({ lake, source }, { waitMs: 0 }, async (lost) => {
      const isUnited = await this.#uniteHour(hour, lost)
      if (isUnited) await this.#options.onUnited?.(hour)
      return isUnited
    })
  }

  async #uniteHour(hour: number, lost: AbortSignal): Promise<boolean> {
    const names = await this.#namesOf(hour)
    if (names.length < 2) return true
    const { lake, source, isShared } = this.#options
    const date = dateOfHour(hour)
    const before = await readManifest(lake, source, date)
    const listed = before?.segments.filter(({ name }) => names.includes(name)) ?? []
    // The files of a shared date have the messages of the listed segments. The manifest must not list more.
    if (isShared(date) && listed.length > 0 && listed.length < names.length) return false
    const directory = rawDateDirectory(lake, source, date)
    const facts = await this.#write(hour, async (writer) => {
      const union = new LineUnion(writer)
      for (const name of await inOrder(directory, names)) {
        for await (const texts of readSegmentTexts(join(directory, name))) {
          union.add(texts)
          if (writer.isFull) await writer.drained()
        }
        union.endSegment()
      }
    })
    lost.throwIfAborted()
    const slices = names.filter((name) => name !== facts.name)
    // Remove the slices last: if the recorder is killed before, the manifest lists no missing segment.
    if (before !== undefined && listed.length > 0) {
      const others = before.segments.filter((segment) => !names.includes(segment.name))
      await writeManifest(lake, { ...before, segments: [...others, facts] })
    }
    for (const name of slices) {
      await rm(join(directory, name), { force: true })
      this.#written.delete(name)
    }
    return true
  }
}

function namesOf(segments: readonly SegmentFacts[]): string {
  return segments.map(({ name }) => name).join()
}

function dateOfHour(hour: number): string {
  return utcDateOf(hour * MS_PER_HOUR)
}

/** Segments by the receive time of their first line. */
async function inOrder(directory: string, names: readonly string[]): Promise<readonly string[]> {
  const firsts = await Promise.all(
    names.map(async (name) => {
      for await (const [, first = ''] of readSegmentTexts(join(directory, name)))
        return { name, ts: BigInt(PLACE.exec(first)?.[1] ?? 0) }
      return { name, ts: 0n }
    }),
  )
  const sorted = firsts.toSorted((a, b) =>
    a.ts === b.ts ? (a.name < b.name ? -1 : 1) : a.ts < b.ts ? -1 : 1,
  )
  return sorted.map(({ name }) => name)
}

/** Each line once. */
class LineUnion {
  readonly #writer: SegmentWriter
  readonly #numbersOf = new Map<string, NumberRanges>()
  readonly #others = new Set<string>()
  #isHeader = true

  constructor(writer: SegmentWriter) {
    this.#writer = writer
  }

  add(texts: readonly string[]): void {
    for (const text of texts) {
      if (this.#isHeader) {
        this.#isHeader = false
        continue
      }
      const [, recvTs, connection, n] = PLACE.exec(text) ?? []
      if (connection === undefined || n === undefined) {
        if (this.#others.has(text)) continue
        this.#others.add(text)
      } else {
        let numbers = this.#numbersOf.get(connection)
        if (numbers === undefined) this.#numbersOf.set(connection, (numbers = new NumberRanges()))
        if (!numbers.add(Number(n))) continue
      }
      this.#writer.add(text, recvTs === undefined ? undefined : BigInt(recvTs))
    }
  }

  endSegment(): void {
    this.#isHeader = true
  }
}

/** A set of numbers that come mostly one after another. */
class NumberRanges {
  /** First and last numbers, in no order. Ranges do not overlap. */
  readonly #ranges: { first: number; last: number }[] = []
  #current: { first: number; last: number } | undefined

  /** Adds a number; false if the set has it. */
  add(n: number): boolean {
    const current = this.#current
    const isNext = current !== undefined && n === current.last + 1
    if (this.#ranges.some(({ first, last }) => n >= first && n <= last)) return false
    if (isNext) current.last = n
    else this.#ranges.push((this.#current = { first: n, last: n }))
    return true
  }
}
