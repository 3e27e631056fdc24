// Builds `dist` if the sources have changed since the last build. The stamp is removed first and written last, so that an
// interrupted build is repeated. Plain JavaScript, since it runs before the first build.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SOURCES = ['bench', 'clients', 'explorer', 'server', 'shared', 'test', 'workers']
const SETTINGS = ['build.mjs', 'package.json', 'package-lock.json', 'tsconfig.json']
const STAMP = 'dist/.sources'

process.chdir(import.meta.dirname)

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** The digest of the names and contents of all files that the build reads. */
function sourcesDigest() {
  const hash = createHash('sha256')
  for (const path of [...SETTINGS, ...SOURCES.flatMap(filesBelow)].toSorted((a, b) => (a < b ? -1 : 1))) {
    const text = readFileSync(path)
    hash.update(`${path}\n${text.length}\n`).update(text)
  }
  return hash.digest('hex')
}

function isStamped(digest) {
  try {
    return readFileSync(STAMP, 'utf8') === digest
  } catch {
    return false
  }
}

const digest = sourcesDigest()
if (!isStamped(digest)) {
  rmSync(STAMP, { force: true })
  process.stderr.write('Building Bookcast, which takes about 20 seconds ...\n')
  const { status } = spawnSync('npm run --silent compile && node dist/clients/build/main.js', {
    shell: true,
    stdio: 'inherit',
  })
  if (status === 0) writeFileSync(STAMP, digest)
  process.exitCode = status ?? 1
}
