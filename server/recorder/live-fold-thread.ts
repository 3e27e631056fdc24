// The thread that turns one source's log into lake files. All its state is in files, so it can be killed and restarted at any time.
// It does not slow down the thread that receives from the exchange.

import { parentPort, workerData } from 'node:worker_threads'
import {
  LiveFoldLoop,
  type LiveFoldMessage,
  type LiveFoldOrder,
  type LiveFoldThreadData,
} from './live-fold-loop.ts'

const port = parentPort
if (port === null) throw new Error('this module is a thread')
const loop = new LiveFoldLoop(workerData as LiveFoldThreadData, (message: LiveFoldMessage) =>
  port.postMessage(message),
)
port.on('message', (order: LiveFoldOrder) => loop.order(order))
await loop.run()
port.close()
