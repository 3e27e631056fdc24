// Verifies an export of `bookcast export` against its manifest, in a directory or at a URL.

import { BookcastError } from './errors.ts'

/** The parts of node:fs, node:fs/promises and node:crypto that are used; Deno and Bun have them, too. */
interface Files {
  createReadStream(path: string): AsyncIterable<Uint8Array>
}
interface Directories {
  readdir(
    path: string,
    options: { readonly recursive: true; readonly withFileTypes: true },
  ): Promise<readonly { readonly name: string; readonly parentPath: string; isFile(): boolean }[]>
}
interface Hashes {
  createHash(name: 'sha256'): { update(bytes: Uint8Array): void; digest(form: 'hex'): string }
}

interface Manifest {
  readonly bookcast_export?: unknown
  readonly parts: readonly { readonly key: string; readonly bytes: number; readonly sha256: string }[]
}

const MANIFEST = 'manifest.json'
const SUMS = 'SHA256SUMS'
/** Records of finished parts. */
const NOTES = '_parts/'

// The name is not a literal, because bundlers for browsers would try to resolve it.
async function load<Module>(name: string): Promise<Module> {
  return (await import(`node:${name}`)) as Module
}

/** The bytes of an object; undefined if a URL has none. */
async function bytesOf(place: string, key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  if (!isAddress(place)) return (await load<Files>('fs')).createReadStream(`${place}/${key}`)
  const path = key.split('/').map(encodeURIComponent).join('/')
  const response = await fetch(`${place}/${path}`)
  if (response.status === 404) return undefined
  if (!response.ok || response.body === null)
    throw new BookcastError(`${place}/${path} answers ${response.status}.`)
  return response.body
}

function isAddress(place: string): boolean {
  return /^https?:\/\//.test(place)
}

/** Size, digest and, with `isText` (for small objects), the text of an object; undefined if there is none. */
async function digestOf(place: string, key: string, isText = false) {
  const hash = (await load<Hashes>('crypto')).createHash('sha256')
  const decoder = new TextDecoder()
  let [bytes, text] = [0, '']
  try {
    const chunks = await bytesOf(place, key)
    if (chunks === undefined) return undefined
    for await (const chunk of chunks) {
      hash.update(chunk)
      bytes += chunk.length
      if (isText) text += decoder.decode(chunk, { stream: true })
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  return { bytes, sha256: hash.digest('hex'), text }
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await (
    await load<Directories>('fs/promises')
  ).readdir(directory, {
    recursive: true,
    withFileTypes: true,
  })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(directory.length + 1))
}

/**
 * Reads every byte of an export and returns one sentence for each object that is missing or wrong. In a directory it also
 * names files that are not part of the export. For Node, Deno and Bun.
 *
 * @param directoryOrAddress the directory, or the http or https address, that has manifest.json
 * @throws {BookcastError} if there is no manifest
 */
export async function verifyExport(directoryOrAddress: string | URL): Promise<string[]> {
  const place = String(directoryOrAddress).replace(/\/+$/, '')
  const manifest = await digestOf(place, MANIFEST, true)
  const content = manifest && (JSON.parse(manifest.text) as Manifest)
  if (manifest === undefined || content?.bookcast_export !== 1)
    throw new BookcastError(`${place} is not a finished export: it has no ${MANIFEST}.`)
  const { parts } = content
  const problems: string[] = []
  const sums = [...parts, { key: MANIFEST, sha256: manifest.sha256 }].map(
    ({ sha256, key }) => `${sha256}  ${key}\n`,
  )
  const found = await digestOf(place, SUMS, true)
  if (found === undefined) problems.push(`${SUMS} is missing`)
  else if (found.text !== sums.join('')) problems.push(`${SUMS} does not fit ${MANIFEST}`)
  for (const { key, bytes, sha256 } of parts) {
    const part = await digestOf(place, key)
    if (part === undefined) problems.push(`${key} is missing`)
    else if (part.bytes !== bytes) problems.push(`${key} has ${part.bytes} bytes, not ${bytes}`)
    else if (part.sha256 !== sha256) problems.push(`${key} has SHA-256 ${part.sha256}, not ${sha256}`)
  }
  if (isAddress(place)) return problems
  const known = new Set([...parts.map(({ key }) => key), MANIFEST, SUMS])
  for (const key of await filesBelow(place))
    if (!known.has(key) && !key.startsWith(NOTES)) problems.push(`${key} is not part of this export`)
  return problems
}
