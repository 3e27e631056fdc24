// Writes a series' hours while they are recorded, and its lake files: a copy of the part file, what is open behind that,
// and a footer.

import { constants, mkdirSync } from 'node:fs'
import { copyFile, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { CONSOLIDATE_ROWS_MAX } from '../../shared/limits.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { writeFully } from '../lake/durable-file.ts'
import type { SpilledEvents } from '../lake/event-spill.ts'
import { HourConsolidation } from '../lake/hour-consolidation.ts'
import { HourEvidence, encodeAnchors } from '../lake/lob-evidence.ts'
import type { CarriedMarket } from '../lake/lob-evidence.ts'
import { verifyLobFile } from '../lake/lob-file-verify.ts'
import type { LobRowGroup } from '../lake/lob-row-group.ts'
import type { MarketFold } from '../lake/market-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import type { PartContents } from './date-part.ts'
import type {
  DateEnds,
  DatePublication,
  DatePublicationOptions,
  PublicationOutcome,
} from './date-publication.ts'
import type { LiveStrands } from './live-strands.ts'
import { createPart, partPathOf, writeEvidence, writeGroup } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

export interface LiveFileOptions extends DatePublicationOptions {
  /** Shared by all series: one is written at a time. */
  readonly group: LobRowGroup
}

/** An hour (since the epoch), or what came of it since a slice. */
export interface LiveHour {
  readonly hour: number
  readonly events: SpilledEvents | undefined
  readonly recording: SeriesRecording
  /** The markets before it, by index; they become those after it. */
  readonly folds: readonly MarketFold[]
  /** The books with which its date began. */
  readonly carried: readonly CarriedMarket[]
  /** Whether it begins here: a slice that follows another has no keyframes. */
  readonly hasKeyframes: boolean
}

export class LiveFileWriter {
  readonly #series: string
  readonly #options: LiveFileOptions
  readonly #strands: LiveStrands
  readonly #publication: DatePublication

  constructor(series: string, options: LiveFileOptions, strands: LiveStrands, publication: DatePublication) {
    this.#series = series
    this.#options = options
    this.#strands = strands
    this.#publication = publication
  }

  async writeHour(
    { file, contents, numbers }: OpenFile,
    { hour, events, recording, folds, carried, hasKeyframes }: LiveHour,
  ): Promise<void> {
    const markets = { ids: recording.marketIds(), order: recording.marketOrder(), folds }
    const { group } = this.#options
    group.clear()
    const write = (rows: LobRowGroup): Promise<void> => writeGroup(file, contents, rows)
    const options = { passRowsMax: CONSOLIDATE_ROWS_MAX, group, write, strands: this.#strands }
    const evidence = new HourEvidence()
    const localOf = (strand: number): number => numbers.localOf(strand)
    if (!contents.hasEvidence) evidence.carry(carried, localOf)
    await new HourConsolidation(markets, options).write(hour, events, { hasKeyframes, evidence, localOf })
    if (!evidence.isEmpty) await writeEvidence(file, contents, evidence.encode())
  }

  /** Publishes the date's part file with what `produce` adds; nothing where there are no rows. */
  async publish(
    date: string,
    { contents, numbers }: PartContents,
    ends: DateEnds,
    produce: (file: OpenFile) => Promise<void>,
  ): Promise<PublicationOutcome> {
    const part = partPathOf(this.#options, this.#series, date)
    createPart(part)
    const path = lobFilePath(this.#options.lake, this.#options.source, this.#series, date)
    mkdirSync(dirname(path), { recursive: true })
    const temporary = temporaryPath(path)
    try {
      await copyFile(part, temporary, constants.COPYFILE_FICLONE)
      const file = await open(temporary, 'r+')
      try {
        await file.truncate(contents.sizeBytes)
        await produce({ file, contents, numbers })
        if (!contents.hasRows) return 'published'
        const labels = this.#labels(date, numbers.strands)
        await writeEvidence(file, contents, encodeAnchors(labels.strands))
        const footer = contents.footer(labels)
        await writeFully(file, footer.bytes, contents.sizeBytes)
        if (ends.isForGood === true) await file.sync()
      } finally {
        await file.close()
      }
      if (ends.isForGood === true) await verifyLobFile(temporary)
      return await this.#publication.publish(date, temporary, ends)
    } finally {
      await rm(temporary, { force: true })
    }
  }

  #labels(date: string, used: readonly number[]) {
    const { source } = this.#options
    const dayStart = BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS
    const covered = this.#strands.coverageOf(dayStart) ?? { from: dayStart, to: dayStart }
    const strands = this.#strands.outlinesOf(dayStart, used)
    return { source, series: this.#series, date, coversFrom: covered.from, coversTo: covered.to, strands }
  }
}
