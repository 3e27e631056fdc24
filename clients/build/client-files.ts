// What the build makes from the clients' sources: the parts generated from the server's declarations, and the files that the server
// serves at /clients.

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { readVersion } from '../../server/http/version.ts'
import type { ClientEndpoint } from './declared-endpoints.ts'
import { npmPackage, npmPackageName } from './npm-package.ts'
import { oneModule } from './one-module.ts'
import { withPythonTypes } from './python-types.ts'
import { typescriptTypes } from './typescript-types.ts'
import { pythonWheel, wheelName } from './wheel.ts'

const ROOT = new URL('../../../', import.meta.url)
const PYTHON_SOURCE = new URL('clients/python/bookcast.py', ROOT)
const TYPESCRIPT_TYPES = new URL('clients/typescript/wire.ts', ROOT)
const COMPILED = new URL('dist/clients/typescript/', ROOT)
const SERVED = new URL('dist/site/clients/', ROOT)

export interface GeneratedSource {
  /** Path from the root of the repository. */
  readonly name: string
  readonly place: URL
  readonly text: string
}

/** The generated sources that differ from what the declarations give. */
export async function outdatedSources(endpoints: readonly ClientEndpoint[]): Promise<GeneratedSource[]> {
  const python = await readFile(PYTHON_SOURCE, 'utf8')
  const wanted: readonly (readonly [URL, string])[] = [
    [TYPESCRIPT_TYPES, typescriptTypes(endpoints)],
    [PYTHON_SOURCE, withPythonTypes(python, endpoints)],
  ]
  const outdated: GeneratedSource[] = []
  for (const [place, text] of wanted) {
    const name = fileURLToPath(place).slice(fileURLToPath(ROOT).length)
    if ((await readFile(place, 'utf8').catch(() => '')) !== text) outdated.push({ name, place, text })
  }
  return outdated
}

function entryPath(extension: string): string {
  return fileURLToPath(new URL(`bookcast${extension}`, COMPILED))
}

/** Writes the files that the server serves. */
export async function writeServedFiles(): Promise<void> {
  const version = readVersion()
  const source = await readFile(PYTHON_SOURCE, 'utf8')
  const python = source.replace('__version__ = "0.0.0"', `__version__ = "${version}"`)
  const module = await oneModule(entryPath('.js'), '.js')
  const types = await oneModule(entryPath('.d.ts'), '.d.ts')
  const files: Readonly<Record<string, string | Uint8Array>> = {
    'bookcast.js': module,
    'bookcast.d.ts': types,
    [npmPackageName(version)]: npmPackage(module, types, version),
    'bookcast.py': python,
    [wheelName(version)]: pythonWheel(python, version),
  }
  await mkdir(SERVED, { recursive: true })
  for (const [name, content] of Object.entries(files)) await writeFile(new URL(name, SERVED), content)
}
