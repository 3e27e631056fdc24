// The thread that turns one source's log into lake files. It owns nothing but files: it can be killed and started again
// at any time, and it never slows down the thread that listens to the exchange.

import { parentPort, workerData } from 'node:worker_threads'
import {
  ConsolidationLoop,
  type ConsolidationMessage,
  type ConsolidationOrder,
  type ConsolidationThreadData,
} from './consolidation-loop.ts'

const port = parentPort
if (port === null) throw new Error('this module is a thread')
const loop = new ConsolidationLoop(workerData as ConsolidationThreadData, (message: ConsolidationMessage) =>
  port.postMessage(message),
)
port.on('message', (order: ConsolidationOrder) => loop.order(order))
await loop.run()
port.close()
