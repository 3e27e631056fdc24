// Decompresses a stream of zstd data piece by piece. zstddec contains the reference decoder as WebAssembly. Its own `decodeStreaming`
// needs all pieces at once and ignores error codes, so this file calls the module's functions. The decoder checks frame checksums,
// joins frames and refuses windows above 128 MiB, which bounds its memory.

import { ZSTDDecoder } from 'zstddec/stream'

/** What this file calls of zstd_decompress, compiled for 32 bits: every pointer and size is an i32. */
interface ZstdFunctions {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly malloc: (size: number) => number
  readonly free: (pointer: number) => void
  readonly ZSTD_createDCtx: () => number
  readonly ZSTD_freeDCtx: (context: number) => number
  readonly ZSTD_decompressStream: (context: number, output: number, input: number) => number
  readonly ZSTD_DStreamInSize: () => number
  readonly ZSTD_DStreamOutSize: () => number
}

/** The data is no zstd, is damaged, or ends within a frame. */
export class ZstdError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'ZstdError'
  }
}

// zstd_errors.h; the functions return them as negative numbers.
const ERROR_CODE_MAX = 120
const ERROR_NAMES: Readonly<Record<number, string>> = {
  10: 'no zstd frame where one must begin',
  14: 'a frame of an unknown kind',
  16: 'a window above 128 MiB',
  20: 'corrupt data',
  22: 'a wrong checksum',
  32: 'it needs a dictionary',
  64: 'out of memory',
}

const BUFFER_STRUCT_BYTES = 12
const SIZE_OFFSET = 4
const POSITION_OFFSET = 8

/** The bytes in `pieces`, which hold one or more frames. Throws ZstdError, and what `pieces` throws. */
export async function* decodeZstd(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new StreamDecoder(await loadZstd())
  try {
    for await (const piece of pieces) yield* decoder.decode(piece)
    if (!decoder.isAtFrameEnd) throw new ZstdError('it ends within a frame')
  } finally {
    decoder.free()
  }
}

class StreamDecoder {
  readonly #zstd: ZstdFunctions
  readonly #context: number
  readonly #inputBytes: number
  readonly #outputBytes: number
  readonly #inputData: number
  readonly #outputData: number
  readonly #input: number
  readonly #output: number
  isAtFrameEnd = true

  constructor(zstd: ZstdFunctions) {
    this.#zstd = zstd
    this.#context = zstd.ZSTD_createDCtx()
    this.#inputBytes = zstd.ZSTD_DStreamInSize()
    this.#outputBytes = zstd.ZSTD_DStreamOutSize()
    this.#inputData = zstd.malloc(this.#inputBytes)
    this.#outputData = zstd.malloc(this.#outputBytes)
    this.#input = zstd.malloc(BUFFER_STRUCT_BYTES)
    this.#output = zstd.malloc(BUFFER_STRUCT_BYTES)
  }

  *decode(piece: Buffer): Generator<Buffer> {
    for (let from = 0; from < piece.length; from += this.#inputBytes) {
      yield* this.#decodePart(piece.subarray(from, from + this.#inputBytes))
    }
  }

  free(): void {
    this.#zstd.ZSTD_freeDCtx(this.#context)
    for (const pointer of [this.#inputData, this.#outputData, this.#input, this.#output]) {
      this.#zstd.free(pointer)
    }
  }

  // Until the input is used up and the output was not full: a full one may leave bytes behind in the decoder.
  *#decodePart(part: Buffer): Generator<Buffer> {
    new Uint8Array(this.#zstd.memory.buffer).set(part, this.#inputData)
    this.#describe(this.#input, this.#inputData, part.length)
    let isFull = false
    while (isFull || this.#position(this.#input) < part.length) {
      this.#describe(this.#output, this.#outputData, this.#outputBytes)
      const left = this.#zstd.ZSTD_decompressStream(this.#context, this.#output, this.#input)
      if (left < 0 && left >= -ERROR_CODE_MAX) {
        throw new ZstdError(ERROR_NAMES[-left] ?? `zstd error ${-left}`)
      }
      const written = this.#position(this.#output)
      this.isAtFrameEnd = left === 0
      isFull = left !== 0 && written === this.#outputBytes
      if (written > 0) {
        yield Buffer.from(new Uint8Array(this.#zstd.memory.buffer, this.#outputData, written))
      }
    }
  }

  // Growing memory replaces its buffer, so a view of it is made anew each time.
  #describe(struct: number, data: number, size: number): void {
    const view = new DataView(this.#zstd.memory.buffer, struct, BUFFER_STRUCT_BYTES)
    view.setUint32(0, data, true)
    view.setUint32(SIZE_OFFSET, size, true)
    view.setUint32(POSITION_OFFSET, 0, true)
  }

  #position(struct: number): number {
    return new DataView(this.#zstd.memory.buffer).getUint32(struct + POSITION_OFFSET, true)
  }
}

let loading: Promise<ZstdFunctions> | undefined

function loadZstd(): Promise<ZstdFunctions> {
  loading ??= new Promise<ZstdFunctions>((resolve, reject) => {
    class CapturingDecoder extends ZSTDDecoder {
      override _init(result: { readonly instance: { readonly exports: unknown } }): void {
        // oxlint-disable-next-line no-underscore-dangle -- the only place where the module's functions can be had
        super._init(result)
        resolve(result.instance.exports as ZstdFunctions)
      }
    }
    new CapturingDecoder().init().catch(reject)
  })
  return loading
}
