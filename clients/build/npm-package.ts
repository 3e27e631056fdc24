// An npm package: a compressed tar archive (POSIX ustar) of the module, its types and package.json. Equal input gives equal bytes.

import { gzipSync } from 'node:zlib'
import { SUMMARY } from './wheel.ts'

const BLOCK_BYTES = 512
const CHECKSUM_AT = 148
/** Two empty blocks end an archive. */
const END = Buffer.alloc(2 * BLOCK_BYTES)

/** The file name of a version's package. */
export function npmPackageName(version: string): string {
  return `bookcast-${version}.tgz`
}

/** The package of the client's module and its types. */
export function npmPackage(module: string, types: string, version: string): Buffer {
  const entry = { types: './bookcast.d.ts', default: './bookcast.js' }
  const manifest = {
    name: 'bookcast',
    version,
    description: SUMMARY,
    license: 'MIT',
    type: 'module',
    sideEffects: false,
    exports: { '.': entry, './client': entry },
  }
  const files = [
    tarEntry('package/package.json', `${JSON.stringify(manifest, null, 2)}\n`),
    tarEntry('package/bookcast.js', module),
    tarEntry('package/bookcast.d.ts', types),
  ]
  return gzipSync(Buffer.concat([...files, END]), { level: 9 })
}

/** A plain file, readable by all, without owner and time. */
function tarEntry(name: string, text: string): Buffer {
  const content = Buffer.from(text)
  const size = content.length.toString(8).padStart(11, '0')
  const header = Buffer.alloc(BLOCK_BYTES)
  header.write(name)
  header.write(`0000644\0${'0000000\0'.repeat(2)}${size}\0${'0'.repeat(11)}\0${' '.repeat(8)}0`, 100)
  header.write('ustar\u000000', 257)
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, CHECKSUM_AT)
  const padding = Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES)
  return Buffer.concat([header, content, padding])
}
