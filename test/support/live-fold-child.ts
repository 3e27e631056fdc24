// A process to be killed that only folds: it reads the log to the given end, publishes continuously, and exits 0.

import { LiveFold } from '../../server/recorder/live-fold.ts'

const [root, segment, offset] = process.argv.slice(2)
const fold = await LiveFold.open({
  lake: `${root}/lake`,
  source: 'kalshi',
  workDirectory: `${root}/work`,
  bounds: { portionRows: 50, groupRows: 100, spillBytes: 20_000 },
})
process.send?.('open')
while (await fold.advance({ segment: Number(segment), offset: Number(offset) })) {
  await fold.publish()
}
await fold.publish()
await fold.close()
process.disconnect()
