// The thread that folds (fold-client.ts starts it).

import { parentPort, workerData } from 'node:worker_threads'
import { foldRawDates } from './fold-raw-dates.ts'
import type { FoldOrder } from './fold-order.ts'
import type { FoldThreadMessage } from './fold-client.ts'

const port = parentPort
if (port === null) throw new Error('this module is a thread')
const send = (message: FoldThreadMessage): void => port.postMessage(message)
const stop = new AbortController()
// The only message is the request to end.
port.once('message', () => stop.abort())
const outcome = await foldRawDates(
  workerData as FoldOrder,
  {
    onSegment: (date, count) => send({ kind: 'segment', date, count }),
    onWrite: (writing) => send({ kind: 'write', writing }),
    onWait: (owner) => send({ kind: 'wait', owner }),
  },
  stop.signal,
)
send({ kind: 'done', outcome })
port.close()
