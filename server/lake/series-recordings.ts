// The recordings of several series, whose events are held in memory up to a common bound.

import { join } from 'node:path'
import { SPILL_BUFFER_BYTES_MAX } from '../../shared/limits.ts'
import { SeriesRecording } from './series-recording.ts'

export class SeriesRecordings {
  readonly #directory: string
  readonly #bytesMax: number
  readonly #bySeries = new Map<string, SeriesRecording>()
  #heldBytes = 0

  /** `directory` is for events that do not fit into `bytesMax` bytes of memory. It is created when needed; the caller removes it. */
  constructor(directory: string, bytesMax = SPILL_BUFFER_BYTES_MAX) {
    this.#directory = directory
    this.#bytesMax = bytesMax
  }

  [Symbol.iterator](): Iterator<SeriesRecording> {
    return this.#bySeries.values()
  }

  /** The recording of a series, a new one if there is none. */
  of(series: string): SeriesRecording {
    let recording = this.#bySeries.get(series)
    if (recording === undefined) {
      const prefix = join(this.#directory, String(this.#bySeries.size))
      recording = new SeriesRecording(series, (hour) => `${prefix}-${hour}`)
      this.#bySeries.set(series, recording)
    }
    return recording
  }

  /** The events in memory have grown by `bytes`: beyond the bound, all are moved to files. Synchronous, as adding events is. */
  grow(bytes: number): void {
    this.#heldBytes += bytes
    if (this.#heldBytes <= this.#bytesMax) return
    for (const { hours } of this) for (const hour of hours.values()) hour.spill()
    this.#heldBytes = 0
  }

  /** Bytes of events in memory. */
  get heldBytes(): number {
    return this.#heldBytes
  }
}
