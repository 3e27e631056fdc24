// A process that holds an embedded store. It prints `ready` once it has written a row, or the error's name and message if it cannot
// start, and then waits to be killed. Usage: node embedded-holder.js <directory>

import { openRelationalStore } from '../../server/storage/relational-store.ts'

const [, , directory = ''] = process.argv
try {
  const store = await openRelationalStore({ databaseUrl: null, dataDirectory: directory })
  await store.postgres.run({ text: 'CREATE TABLE IF NOT EXISTS kept (pid int)', parameters: [] })
  await store.postgres.run({ text: `INSERT INTO kept VALUES ($1::int4)`, parameters: [process.pid] })
  process.stdout.write('ready\n')
} catch (error) {
  process.stdout.write(`${String(error)}\n`)
}
