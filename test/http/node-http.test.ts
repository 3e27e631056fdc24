// The tests of framing, lifecycle, connections, compression and streaming once more, over node:http, which serves where
// uWebSockets.js has no binary. CI runs those of conformance, slow readers and faults on it too.

import process from 'node:process'

process.env['BOOKCAST_HTTP'] = 'node'

for (const name of ['request-framing', 'request-lifecycle', 'connections', 'compression', 'streaming'])
  await import(`./${name}.test.js`)
