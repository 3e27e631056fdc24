// The thread that turns one source's log into lake files. It owns nothing but files: it can be killed and started again
// at any time, and it never slows down the thread that listens to the exchange.

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
