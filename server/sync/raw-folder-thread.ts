// The thread that folds a date for a synchronization (raw-folder.ts).

import { parentPort, workerData } from 'node:worker_threads'
import { foldRawDates } from '../fold/fold-raw-dates.ts'
import type { FoldThreadData } from './raw-folder.ts'

const { lake, source, date, added } = workerData as FoldThreadData
const rules = new Map([[date, { added }]])
await foldRawDates({ lake, source, dates: [date], rules, signal: new AbortController().signal })
parentPort?.postMessage('folded')
