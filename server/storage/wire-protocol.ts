// The part of PostgreSQL's wire protocol that the embedded store's gate needs: the bounds of a client's messages, and the end of an
// answer. Source: PostgreSQL documentation, "Message Formats". It decodes no values.

import { EMBEDDED_MESSAGE_BYTES_MAX } from '../../shared/limits.ts'

/** The four bytes after the length of an untyped message, which is the first one of a connection. */
export const PROTOCOL_3 = 196_608
export const CANCEL_REQUEST = 80_877_102
export const SSL_REQUEST = 80_877_103
export const GSS_REQUEST = 80_877_104

// Message types by their letter.
export const QUERY = 0x51
export const SYNC = 0x53
export const TERMINATE = 0x58
const READY_FOR_QUERY = 0x5a
const ERROR_RESPONSE = 0x45
/** ReadyForQuery's status outside of a transaction: `I`. */
export const STATUS_IDLE = 0x49

export const PARSE = 0x50
const CLOSE = 0x43

export const SYNC_MESSAGE = messageOf(SYNC, '')
export const ROLLBACK_MESSAGE = messageOf(QUERY, 'ROLLBACK\0')

/** Collects a client's bytes and returns them message by message. */
export class ClientMessages {
  #chunks: Buffer[] = []
  #bytes = 0
  #isBroken = false

  /** Whether the bytes cannot be a message, or are too many. No message is returned after that. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > EMBEDDED_MESSAGE_BYTES_MAX) this.#isBroken = true
  }

  /** Whether a complete message has arrived. Only the first messages of a connection are untyped. */
  hasNext(isTyped: boolean): boolean {
    return this.#bytes >= this.#nextBytes(isTyped) && !this.#isBroken
  }

  next(isTyped: boolean): Buffer | undefined {
    const messageBytes = this.#nextBytes(isTyped)
    if (this.#bytes < messageBytes || this.#isBroken) return undefined
    const buffer = this.#join()
    this.#chunks = [buffer.subarray(messageBytes)]
    this.#bytes -= messageBytes
    return buffer.subarray(0, messageBytes)
  }

  /** Bytes of the next message, or of its head while the head is incomplete. */
  #nextBytes(isTyped: boolean): number {
    const headBytes = isTyped ? 5 : 8
    if (this.#bytes < headBytes) return headBytes
    const first = this.#chunks[0]
    const head = first !== undefined && first.length >= headBytes ? first : this.#join()
    const messageBytes = isTyped ? 1 + head.readUInt32BE(1) : head.readUInt32BE(0)
    if (messageBytes < headBytes || messageBytes > EMBEDDED_MESSAGE_BYTES_MAX) this.#isBroken = true
    return messageBytes
  }

  #join(): Buffer {
    const [only] = this.#chunks
    if (this.#chunks.length === 1 && only !== undefined) return only
    const buffer = Buffer.concat(this.#chunks, this.#bytes)
    this.#chunks = [buffer]
    return buffer
  }
}

/** What whole messages of the server show. */
export function readAnswer(messages: Buffer) {
  /** The transaction status of the last ReadyForQuery; undefined without one. */
  let readyStatus: number | undefined
  /** An error that ends the session, in the server's words. */
  let fatalError: string | undefined
  for (let at = 0, end = 0; at < messages.length; at = end) {
    end = at + 1 + messages.readUInt32BE(at + 1)
    if (messages[at] === READY_FOR_QUERY) readyStatus = messages[at + 5]
    if (messages[at] === ERROR_RESPONSE) fatalError ??= fatalErrorOf(messages.toString('utf8', at + 5, end))
  }
  return { readyStatus, fatalError }
}

/** Fields of an ErrorResponse are a letter and a text that ends with a zero: `V` the severity, `M` the message. */
function fatalErrorOf(body: string): string | undefined {
  const fields = body.split('\0')
  const severity = fields.find((field) => field.startsWith('V'))
  if (severity !== 'VPANIC' && severity !== 'VFATAL') return undefined
  return fields.find((field) => field.startsWith('M'))?.slice(1)
}

/** The first message of a connection. */
export function startupMessage(user: string, database: string): Buffer {
  const body = Buffer.from(`user\0${user}\0database\0${database}\0client_encoding\0UTF8\0\0`)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length, 0)
  head.writeUInt32BE(PROTOCOL_3, 4)
  return Buffer.concat([head, body])
}

/** An error that ends the connection, as the server would send it. */
export function fatalErrorMessage(sqlState: string, message: string): Buffer {
  return messageOf(ERROR_RESPONSE, `SFATAL\0VFATAL\0C${sqlState}\0M${message}\0\0`)
}

/** The name that a Parse message gives its statement; empty for the unnamed one. */
export function parsedName(message: Buffer): string {
  return message.toString('latin1', 5, message.indexOf(0, 5))
}

/** Asks the server to close a prepared statement; an unknown name is not an error. */
export function closeStatementMessage(name: string): Buffer {
  return messageOf(CLOSE, `S${name}\0`, 'latin1')
}

/** The type letter, the length of the rest, and the content. */
function messageOf(type: number, content: string, encoding: BufferEncoding = 'utf8'): Buffer {
  const body = Buffer.from(content, encoding)
  const head = Buffer.alloc(5)
  head[0] = type
  head.writeUInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}
