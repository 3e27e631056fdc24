// The progress of an import or a rebuild.

import type { FoldWriting } from '../fold/fold-order.ts'
import type { ImportProgress } from '../import/recording-import.ts'
import { mib, StepProgress } from './step-progress.ts'

export class ImportProgressView extends StepProgress implements ImportProgress {
  #date = ''
  #file = ''

  onInput(name: string, sizeBytes: number | undefined): void {
    this.step(`reading ${name}${sizeBytes === undefined ? '' : ` (${mib(sizeBytes)})`}`, sizeBytes)
  }

  onBytes(count: number): void {
    this.add(count)
  }

  onWait(owner: string): void {
    this.step(`waiting for ${owner}, which writes to this lake`)
  }

  onSegment(date: string, count: number): void {
    if (date !== this.#date) {
      this.#date = date
      this.step(`folding ${date} (${count} raw segment${count === 1 ? '' : 's'})`, count)
    }
    this.add(1)
  }

  onWrite({ series, date, rows, events }: FoldWriting): void {
    const file = `${series} ${date}`
    if (file !== this.#file) {
      this.#file = file
      this.step(`writing ${file}`, events)
    }
    // Rows include keyframes, so their count may exceed the expected count of events: the bar then stays full.
    this.reach(Math.min(rows, events))
  }
}
