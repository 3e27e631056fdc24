// A process of export workers whose parts do no work. Arguments: the database's URL, the number of loops.

import { PartQueue, type SubmittedPlan } from '../server/export/part-queue.ts'
import { type PartWork, PartWorker } from '../server/export/part-worker.ts'
import { readVersion } from '../server/http/version.ts'

const NO_WORK: PartWork<SubmittedPlan, object> = {
  version: readVersion(),
  prepare: async () => {},
  runPart: async () => ({ rows: 0, bytes: 0 }),
  finish: async () => {},
}

const [, , url = '', loops = '1'] = process.argv
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
const queue = await PartQueue.open(url, true, () => {})
const running = new PartWorker(queue, NO_WORK, String(process.pid), () => {}).run(Number(loops), stop.signal)
process.send?.('ready')
await running
await queue.close()
process.disconnect()
