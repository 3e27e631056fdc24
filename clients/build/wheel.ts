// A Python wheel: a zip archive of the package and the files required by PEP 427. Equal input gives equal bytes.

import { createHash } from 'node:crypto'
import { crc32, deflateRawSync } from 'node:zlib'

interface ArchiveFile {
  readonly name: string
  readonly content: Buffer
}

/** 1 January 1980, midnight: the earliest date in zip. */
const DOS_DATE = 0x21
const DEFLATED = 8
const ZIP_VERSION = 20
/** A plain file, readable by all, made on Unix. */
const UNIX_ATTRIBUTES = (0o100644 << 16) >>> 0
const MADE_BY_UNIX = (3 << 8) | ZIP_VERSION

/** The description in the clients' packages. */
export const SUMMARY =
  'Client of a Bookcast server: order books, candles, weather and climate of temperature prediction markets'

/** The file name of a version's wheel. */
export function wheelName(version: string): string {
  return `bookcast-${version}-py3-none-any.whl`
}

/** The wheel of the client: its single file as a package, because type checkers look for `py.typed` only in packages (PEP 561). */
export function pythonWheel(source: string, version: string): Buffer {
  const information = `bookcast-${version}.dist-info`
  const files = [
    { name: 'bookcast/__init__.py', text: source },
    { name: 'bookcast/py.typed', text: '' },
    { name: `${information}/METADATA`, text: metadata(version) },
    { name: `${information}/WHEEL`, text: wheelMetadata() },
    { name: `${information}/top_level.txt`, text: 'bookcast\n' },
  ].map(({ name, text }): ArchiveFile => ({ name, content: Buffer.from(text) }))
  const lines = files.map(({ name, content }) => `${name},sha256=${recordDigest(content)},${content.length}`)
  const record = { name: `${information}/RECORD`, content: Buffer.from('') }
  const recordText = [...lines, `${record.name},,`, ''].join('\n')
  return zipArchive([...files, { ...record, content: Buffer.from(recordText) }])
}

function metadata(version: string): string {
  return `Metadata-Version: 2.1
Name: bookcast
Version: ${version}
Summary: ${SUMMARY}
License: MIT
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Provides-Extra: polars
Requires-Dist: polars; extra == "polars"
Provides-Extra: arrow
Requires-Dist: pyarrow; extra == "arrow"
`
}

function wheelMetadata(): string {
  return `Wheel-Version: 1.0
Generator: bookcast
Root-Is-Purelib: true
Tag: py3-none-any
`
}

function recordDigest(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url')
}

/** A zip archive (APPNOTE 6.3.3) of deflated files. */
function zipArchive(files: readonly ArchiveFile[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content } of files) {
    const packed = deflateRawSync(content, { level: 9 })
    const shared = sharedFields(name, content, packed)
    const local = Buffer.concat([
      uint32(0x04034b50),
      uint16(ZIP_VERSION),
      shared,
      uint16(0),
      Buffer.from(name),
    ])
    parts.push(local, packed)
    directory.push(
      Buffer.concat([
        uint32(0x02014b50),
        uint16(MADE_BY_UNIX),
        uint16(ZIP_VERSION),
        shared,
        // No extra field, no comment, disk 0, binary.
        Buffer.alloc(8),
        uint32(UNIX_ATTRIBUTES),
        uint32(offset),
        Buffer.from(name),
      ]),
    )
    offset += local.length + packed.length
  }
  const directoryBytes = Buffer.concat(directory)
  const end = Buffer.concat([
    uint32(0x06054b50),
    Buffer.alloc(4),
    uint16(files.length),
    uint16(files.length),
    uint32(directoryBytes.length),
    uint32(offset),
    uint16(0),
  ])
  return Buffer.concat([...parts, directoryBytes, end])
}

/** The fields that the local header and the directory entry of a file share, up to the length of its name. */
function sharedFields(name: string, content: Buffer, packed: Buffer): Buffer {
  return Buffer.concat([
    // No flags; names are ASCII.
    uint16(0),
    uint16(DEFLATED),
    uint16(0),
    uint16(DOS_DATE),
    uint32(crc32(content)),
    uint32(packed.length),
    uint32(content.length),
    uint16(Buffer.byteLength(name)),
  ])
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}
