// The progress of a synchronization.

import type { SyncProgress } from '../sync/lake-sync.ts'
import { mib, StepProgress } from './step-progress.ts'

export class SyncProgressView extends StepProgress implements SyncProgress {
  onPlan({ objects, sizeBytes }: { readonly objects: number; readonly sizeBytes: number }): void {
    const title = `comparing ${objects} new or changed files, ${mib(sizeBytes)}`
    this.step(title, objects === 0 ? undefined : sizeBytes)
  }

  onBytes(count: number): void {
    this.add(count)
  }

  onObject(key: string, outcome: 'transferred' | 'equal' | 'conflict' | 'sample' | 'failed'): void {
    this.line(`${outcome} ${key}`)
  }
}
