// The tests of framing, lifecycle, connections, compression and, with full effort, streaming once more, over node:http, which serves where
// uWebSockets.js has no binary. CI runs those of conformance, slow readers and faults on it too.

import process from 'node:process'
import { describe } from 'node:test'
import { IS_FULL_EFFORT } from '../support/effort.ts'

process.env['BOOKCAST_HTTP'] = 'node'

/** CI also runs it alone over node:http. */
const LONG = IS_FULL_EFFORT ? ['streaming'] : []

for (const name of ['request-framing', 'request-lifecycle', 'connections', 'compression', ...LONG])
  describe(name, async () => {
    await import(`./${name}.test.js`)
  })
