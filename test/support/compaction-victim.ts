// Compacts with the embedded store of a directory and kills itself at a given step: `<data dir> <lake> <now ms> <step>`.

import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'

const [dataDirectory = '', lake = '', nowMs = '', fatalStep = ''] = process.argv.slice(2)
const store = await openRelationalStore({ databaseUrl: null, dataDirectory })
await compactClosedDays({
  postgres: store.postgres,
  lake,
  clock: { nowMs: () => Number(nowMs), sleep: async () => {} },
  onStep(step) {
    if (step === fatalStep) process.kill(process.pid, 'SIGKILL')
  },
})
