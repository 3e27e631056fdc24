// The last step of the build: checks that the generated parts of the clients' sources match the server's declarations, and makes
// the files that the server serves. With --write it updates the sources instead.

import { writeFile } from 'node:fs/promises'
import { outdatedSources, writeServedFiles } from './client-files.ts'
import { declaredEndpoints } from './declared-endpoints.ts'
import { writeDocsFiles } from './docs-files.ts'
import { writeExplorerFiles } from './explorer-files.ts'

const endpoints = declaredEndpoints()
const outdated = await outdatedSources(endpoints)
const names = outdated.map(({ name }) => name)
if (process.argv.includes('--write')) {
  for (const { place, text } of outdated) await writeFile(place, text)
  process.stdout.write(names.map((name) => `wrote ${name}\n`).join(''))
} else if (outdated.length > 0) {
  process.stderr.write(
    `${names.join(', ')}: not what the server declares any more; "npm run clients:write" brings it up to date\n`,
  )
  process.exitCode = 1
} else await Promise.all([writeServedFiles(), writeDocsFiles(endpoints), writeExplorerFiles()])
