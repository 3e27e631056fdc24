// Writes a series' hours while they are recorded, and its lake files: a copy of the part file, the rows after it, and a footer.

import { constants, mkdirSync } from 'node:fs'
import { copyFile, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { FOLD_ROWS_MAX } from '../../shared/limits.ts'
import { writeFully } from '../lake/durable-file.ts'
import type { SpilledEvents } from '../lake/event-spill.ts'
import { HourFold } from '../lake/hour-fold.ts'
import type { LobFileContents } from '../lake/lob-file-contents.ts'
import { verifyLobFile } from '../lake/lob-file-verify.ts'
import type { LobRowGroup } from '../lake/lob-row-group.ts'
import type { MarketFold } from '../lake/market-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { partitionDraftPath } from '../lake/temporary-file.ts'
import type { DateEnd, DatePublication, DatePublicationOptions } from './date-publication.ts'
import type { LiveDate } from './live-date.ts'
import { createPart, partPathOf, writeGroup } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

export interface LiveFileOptions extends DatePublicationOptions {
  /** Where part files and spilled events go. */
  readonly workDirectory: string
  /** Shared by all series: one is written at a time. */
  readonly group: LobRowGroup
}

/** An hour (since the epoch), or its part since a portion. */
export interface LiveHour {
  readonly hour: number
  readonly date: LiveDate
  readonly events: SpilledEvents | undefined
  readonly recording: SeriesRecording
  /** The markets at its start, by index. Writing turns them into those at its end. */
  readonly folds: readonly MarketFold[]
  /** False for a portion that follows another one. */
  readonly hasKeyframes: boolean
}

export class LiveFileWriter {
  readonly #series: string
  readonly #options: LiveFileOptions
  readonly #publication: DatePublication

  constructor(series: string, options: LiveFileOptions, publication: DatePublication) {
    this.#series = series
    this.#options = options
    this.#publication = publication
  }

  async writeHour(
    file: OpenFile,
    { hour, date, events, recording, folds, hasKeyframes }: LiveHour,
  ): Promise<void> {
    const markets = { ids: recording.marketIds(), order: recording.marketOrder(), folds }
    const { group } = this.#options
    group.clear()
    const write = (rows: LobRowGroup): Promise<void> => writeGroup(file, rows)
    const isInverted = (chain: number): boolean => date.isInverted(chain)
    const options = { passRowsMax: FOLD_ROWS_MAX, group, write, isInverted }
    await new HourFold(markets, options).write(hour, events, { hasKeyframes })
  }

  /**
   * Publishes a copy of the date's part file with what `produce` adds. Publishes nothing if there are no rows, or if others record
   * the date too. False if the lake's file stays.
   */
  async publish(
    live: LiveDate,
    contents: LobFileContents,
    end: DateEnd,
    produce: (file: OpenFile) => Promise<void>,
  ): Promise<boolean> {
    const { date } = live
    const part = partPathOf(this.#options, this.#series, date)
    createPart(part)
    const path = lobFilePath(this.#options.lake, this.#options.source, this.#series, date)
    const temporary = partitionDraftPath(path)
    mkdirSync(dirname(temporary), { recursive: true })
    try {
      await copyFile(part, temporary, constants.COPYFILE_FICLONE)
      const file = await open(temporary, 'r+')
      try {
        await file.truncate(contents.sizeBytes)
        await produce({ file, contents })
        if (!contents.hasRows || end.isShared) return true
        const footer = contents.footer(this.#labels(live))
        await writeFully(file, footer.bytes, contents.sizeBytes)
        if (end.isForGood) await file.sync()
      } finally {
        await file.close()
      }
      if (end.isForGood) await verifyLobFile(temporary)
      return await this.#publication.publish(date, temporary, end)
    } finally {
      await rm(temporary, { force: true })
    }
  }

  #labels(live: LiveDate) {
    const { source } = this.#options
    const { from, to } = live.coverageOf(this.#series) ?? { from: live.dayStart, to: live.dayStart }
    return { source, series: this.#series, date: live.date, coversFrom: from, coversTo: to }
  }
}
