// The thread that merges an object into the lake's file (conflict-merge.ts).

import { parentPort, workerData } from 'node:worker_threads'
import { isMergeRefusal, mergeLakeFile } from '../import/lake-file-merge.ts'
import type { ConflictOutcome, MergeThreadData } from './conflict-merge.ts'

const { date, path, ...place } = workerData as MergeThreadData
parentPort?.postMessage(await merge())

async function merge(): Promise<ConflictOutcome> {
  try {
    await mergeLakeFile({ date, path }, place)
    return 'merged'
  } catch (error) {
    if (!isMergeRefusal(error)) throw error
    return { refusal: error.message }
  }
}
