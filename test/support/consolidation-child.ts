// A process that only consolidates, to be killed: it reads the log to the given end, publishes all the time, and exits 0.

import { Consolidation } from '../../server/recorder/consolidation.ts'

const [root, segment, offset] = process.argv.slice(2)
const consolidation = await Consolidation.open({
  lake: `${root}/lake`,
  source: 'kalshi',
  workDirectory: `${root}/work`,
  bounds: { sliceRows: 50, groupRows: 100, spillBytes: 20_000 },
})
process.send?.('open')
while (await consolidation.advance({ segment: Number(segment), offset: Number(offset) })) {
  await consolidation.publish()
}
await consolidation.publish()
await consolidation.close()
process.disconnect()
