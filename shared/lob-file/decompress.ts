// Page decompression by parquet codec. zstd, which Bookcast writes, runs in WebAssembly (1.5 times as fast as pure JavaScript). The
// codecs of other writers' files come from hyparquet-compressors and node:zlib.

import { gunzipSync } from 'node:zlib'
import { compressors as libraryCompressors } from 'hyparquet-compressors'
import { ZSTDDecoder } from 'zstddec'
import { ROW_GROUP_BYTES_MAX } from '../limits.ts'

const zstd = new ZSTDDecoder()

let prepared: Promise<void> | undefined

/**
 * Loads the WebAssembly decoder. Must resolve before the first `decompressPage`. If `fetch` exists, zstddec fetches its module
 * from a data URL. The streams of `fetch` detach buffers, which would make every later access to a typed array of this thread
 * slower (see shared/stream-task.ts). Without `fetch`, zstddec uses the bytes directly.
 */
export async function prepareDecompression(): Promise<void> {
  if (prepared === undefined) {
    const { fetch } = globalThis
    Reflect.deleteProperty(globalThis, 'fetch')
    try {
      prepared = zstd.init()
    } finally {
      globalThis.fetch = fetch
    }
  }
  await prepared
}

export const pageCompressors = {
  ...libraryCompressors,
  ZSTD: (input: Uint8Array, length: number) => zstd.decode(input, length),
  GZIP: (input: Uint8Array, length: number) => gunzipSync(input, { maxOutputLength: Math.max(1, length) }),
}

/**
 * The decompressed bytes of a page. Throws if the codec is unknown, or if the result does not have the stated length, which
 * indicates damage.
 */
export function decompressPage(codec: string, input: Uint8Array, uncompressedBytes: number): Uint8Array {
  if (uncompressedBytes < 0 || uncompressedBytes > ROW_GROUP_BYTES_MAX) {
    throw new Error(`a page claims ${uncompressedBytes} bytes`)
  }
  if (codec === 'UNCOMPRESSED') return input
  if (uncompressedBytes === 0) return new Uint8Array(0)
  const decompress = pageCompressors[codec as keyof typeof pageCompressors]
  if (decompress === undefined) throw new Error(`codec ${codec} is not supported`)
  const output = decompress(input, uncompressedBytes)
  if (output.length !== uncompressedBytes) {
    throw new Error(`a page unpacks to ${output.length} bytes instead of ${uncompressedBytes}`)
  }
  return output
}
