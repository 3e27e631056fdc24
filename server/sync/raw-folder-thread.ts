// The thread that folds dates for a synchronization (raw-folder.ts).

import { parentPort, workerData } from 'node:worker_threads'
import { foldRawDates } from '../fold/fold-raw-dates.ts'
import type { FoldThreadData } from './raw-folder.ts'

const { lake, source, dates } = workerData as FoldThreadData
await foldRawDates({ lake, source, dates, signal: new AbortController().signal })
parentPort?.postMessage('folded')
