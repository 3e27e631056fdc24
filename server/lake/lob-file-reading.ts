// Reads the footer of a lob.v1 file that Bookcast wrote, and byte ranges. The caller decides what they must contain. Errors do not
// name the file.

import { open, type FileHandle } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { parquetMetadata } from 'hyparquet'
import type { FileMetaData } from 'hyparquet'
import { FOOTER_BYTES_MAX } from '../../shared/limits.ts'
import { lobFooterChecksum } from '../../shared/lob-checksum.ts'
import { LOB_FOOTER_KEYS } from '../../shared/lob-v1.ts'
import { PARQUET_MAGIC } from './lob-footer.ts'

const TRAILER_BYTES = 8

export interface LobFooterParts {
  readonly metadata: FileMetaData
  /** The footer's values by key. */
  readonly values: Map<string, string>
  /** The offset of the footer. */
  readonly dataEnd: number
  /** The footer has a checksum of itself, and it is right. */
  readonly isChecked: boolean
}

/** Throws if the file is truncated or not parquet, or the footer's checksum is wrong. */
export async function readLobFooter(file: FileHandle, sizeBytes: number): Promise<LobFooterParts> {
  if (sizeBytes < PARQUET_MAGIC.length + TRAILER_BYTES) throw new Error('it is truncated')
  const trailer = await readBytes(file, sizeBytes - TRAILER_BYTES, sizeBytes)
  const footerBytes = trailer.readUInt32LE(0)
  const dataEnd = sizeBytes - TRAILER_BYTES - footerBytes
  const isParquet = trailer.subarray(4).equals(PARQUET_MAGIC)
  if (!isParquet || footerBytes > FOOTER_BYTES_MAX || dataEnd < PARQUET_MAGIC.length) {
    throw new Error('it is truncated or no parquet file')
  }
  const footer = await readBytes(file, dataEnd, sizeBytes)
  const checksum = lobFooterChecksum(footer.subarray(0, footerBytes))
  if (checksum !== undefined && checksum.stored !== checksum.computed) {
    throw new Error('its footer has a wrong checksum')
  }
  const metadata = parquetMetadata(footer, { geoparquet: false })
  const values = new Map(metadata.key_value_metadata?.map(({ key, value = '' }) => [key, value]))
  return { metadata, values, dataEnd, isChecked: checksum !== undefined }
}

/** Throws if the file ends before `end`. */
export async function readBytes(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start)
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done)
    if (bytesRead === 0) throw new Error('it ends too early')
    done += bytesRead
  }
  return bytes
}

/** Whether two files have the same rows, by their checksums, and differ only in the figures of hours, which `path` lacks. */
export async function lacksHoursAlone(path: string, next: string): Promise<boolean> {
  const [own, other] = [await checkedValues(path), await checkedValues(next)]
  const { hours, footerCrc32 } = LOB_FOOTER_KEYS
  if (own === undefined || other === undefined || own.has(hours) || !other.delete(hours)) return false
  for (const values of [own, other]) values.delete(footerCrc32)
  return isDeepStrictEqual(own, other)
}

/** Undefined if the footer cannot be read or has no checksum. */
async function checkedValues(path: string): Promise<Map<string, string> | undefined> {
  const file = await open(path)
  try {
    const { values, isChecked } = await readLobFooter(file, (await file.stat()).size)
    return isChecked ? values : undefined
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}
