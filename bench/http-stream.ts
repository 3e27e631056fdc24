// A client with minimal cost: one socket, one buffer for all reads, and only as much HTTP as is needed to find the body. So a
// measurement shows the server, not the client. It assumes HTTP/1.1 with chunked bodies, and does not follow, compress, pipeline or
// retry.

import { connect } from 'node:net'
import type { Socket } from 'node:net'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface StreamOptions {
  readonly address: Address
  /** Path and query. */
  readonly target: string
  /** Receives every piece of the body; the bytes are only valid during the call. */
  readonly onBody?: (bytes: Uint8Array) => void
  /** Reads no faster than this. */
  readonly bytesPerSecond?: number
  /** Stops reading for good after this many body bytes. */
  readonly stallAfterBytes?: number
}

export interface StreamResult {
  readonly status: number
  readonly bodyBytes: number
  /** From sending the request to the first byte of the body. */
  readonly firstByteMs: number
  readonly totalMs: number
}

export interface RunningStream {
  /** Rejects if the transfer ends before its final chunk, or `destroy` was called. */
  readonly done: Promise<StreamResult>
  readonly bodyBytes: number
  destroy(): void
}

const READ_BYTES = 256 * 1024
/** Bytes that a slow client reads at once. */
const SLOW_READ_BYTES = 16 * 1024

/** Sends the request and resolves when the whole body has arrived. */
export async function readStream(options: StreamOptions): Promise<StreamResult> {
  return await startStream(options).done
}

/** Sends the request and reads in the background. */
export function startStream(options: StreamOptions): RunningStream {
  const { address, target, bytesPerSecond, stallAfterBytes } = options
  const parser = new ResponseParser(options.onBody)
  const buffer = Buffer.allocUnsafe(bytesPerSecond === undefined ? READ_BYTES : SLOW_READ_BYTES)
  let sentMs = 0
  let firstByteMs = 0
  let resumeTimer: NodeJS.Timeout | undefined
  let socket: Socket | undefined
  const done = new Promise<StreamResult>((resolve, reject) => {
    const onRead = (sizeBytes: number): boolean => {
      parser.read(buffer.subarray(0, sizeBytes))
      if (firstByteMs === 0 && parser.bodyBytes > 0) firstByteMs = performance.now() - sentMs
      if (parser.isComplete) {
        const totalMs = performance.now() - sentMs
        socket?.destroy()
        resolve({ status: parser.status, bodyBytes: parser.bodyBytes, firstByteMs, totalMs })
      }
      if (stallAfterBytes !== undefined && parser.bodyBytes >= stallAfterBytes) return false
      if (bytesPerSecond === undefined) return true
      resumeTimer = setTimeout(() => socket?.resume(), (1000 * sizeBytes) / bytesPerSecond)
      return false
    }
    socket = connect({ ...address, onread: { buffer, callback: onRead } })
    socket.setNoDelay(true)
    socket.once('connect', () => {
      sentMs = performance.now()
      socket?.write(`GET ${target} HTTP/1.1\r\nHost: ${address.host}:${address.port}\r\n\r\n`)
    })
    socket.once('error', reject)
    socket.once('close', () => {
      clearTimeout(resumeTimer)
      reject(new Error(`the transfer of ${target} ended after ${parser.bodyBytes} body bytes`))
    })
  })
  return {
    done,
    get bodyBytes() {
      return parser.bodyBytes
    },
    destroy() {
      socket?.destroy()
    },
  }
}

type ParserState = 'head' | 'size' | 'data' | 'dataEnd' | 'trailer' | 'complete'

const CR = 13
const LF = 10

/** Parses a response from pieces of any size. */
export class ResponseParser {
  readonly #onBody: ((bytes: Uint8Array) => void) | undefined
  #state: ParserState = 'head'
  /** Text of the head or of the line being read. */
  #text = ''
  /** Body bytes left in this chunk, or in the whole body if its length is given. */
  #left = 0
  #isChunked = false
  status = 0
  bodyBytes = 0

  constructor(onBody?: (bytes: Uint8Array) => void) {
    this.#onBody = onBody
  }

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  read(bytes: Uint8Array): void {
    let offset = 0
    while (offset < bytes.length && this.#state !== 'complete') {
      offset = this.#state === 'data' ? this.#readData(bytes, offset) : this.#readText(bytes, offset)
    }
  }

  #readData(bytes: Uint8Array, offset: number): number {
    const end = Math.min(offset + this.#left, bytes.length)
    this.#onBody?.(bytes.subarray(offset, end))
    this.bodyBytes += end - offset
    this.#left -= end - offset
    if (this.#left === 0) this.#state = this.#isChunked ? 'dataEnd' : 'complete'
    return end
  }

  #readText(bytes: Uint8Array, offset: number): number {
    const byte = bytes[offset]!
    if (byte !== LF) {
      if (byte !== CR) this.#text += String.fromCharCode(byte)
    } else if (this.#state === 'head' && this.#text !== '' && !this.#text.endsWith('\n')) {
      this.#text += '\n'
    } else {
      this.#endText()
      this.#text = ''
    }
    return offset + 1
  }

  #endText(): void {
    if (this.#state === 'head') this.#readHead()
    else if (this.#state === 'dataEnd') this.#state = 'size'
    else if (this.#state === 'trailer') this.#state = 'complete'
    else {
      this.#left = Number.parseInt(this.#text, 16)
      this.#state = this.#left === 0 ? 'trailer' : 'data'
    }
  }

  #readHead(): void {
    this.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(this.#text)?.[1])
    this.#isChunked = /^transfer-encoding: *chunked$/im.test(this.#text)
    this.#left = Number(/^content-length: *(\d+)$/im.exec(this.#text)?.[1] ?? 0)
    this.#state = this.#isChunked ? 'size' : this.#left === 0 ? 'complete' : 'data'
  }
}
