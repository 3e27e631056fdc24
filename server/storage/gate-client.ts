// A client of the embedded store: its start-up, and the statements it has prepared.

import type { Socket } from 'node:net'
import { EMBEDDED_UNREAD_BYTES_MAX } from '../../shared/limits.ts'
import {
  CANCEL_REQUEST,
  ClientMessages,
  fatalErrorMessage,
  GSS_REQUEST,
  parsedName,
  PROTOCOL_3,
  SSL_REQUEST,
} from './wire-protocol.ts'

export class GateClient {
  readonly socket: Socket
  readonly messages = new ClientMessages()
  /** Names of the statements it has prepared. */
  readonly statements = new Set<string>()
  hasStarted = false
  isGone = false

  constructor(socket: Socket) {
    this.socket = socket
  }

  /** Answers the messages before the first statement; `greeting` is the store's answer to a start-up message. */
  start(greeting: Buffer): void {
    for (;;) {
      const message = this.messages.next(false)
      if (message === undefined) return
      const code = message.readUInt32BE(4)
      if (code === PROTOCOL_3) {
        this.hasStarted = true
        this.socket.write(greeting)
        return
      }
      if (code === CANCEL_REQUEST) {
        this.socket.destroy()
        return
      }
      if (code !== SSL_REQUEST && code !== GSS_REQUEST) {
        this.sendAway()
        return
      }
      this.socket.write('N')
    }
  }

  /** Records the statement that a Parse message prepares. */
  noteStatement(message: Buffer): void {
    const name = parsedName(message)
    if (name !== '') this.statements.add(name)
  }

  /** Sends an answer. The session must not wait for a client that does not read. The store's batches bound the size of answers. */
  send(answer: Buffer): void {
    if (answer.length > 0) this.socket.write(answer)
    if (this.socket.writableLength > EMBEDDED_UNREAD_BYTES_MAX) this.socket.destroy()
  }

  sendAway(): void {
    this.socket.end(fatalErrorMessage('57P01', 'The embedded store ends this connection.'))
    this.socket.destroySoon()
  }
}
