// Lets many clients use the embedded store's only session, one at a time. PGlite is a single session, and its socket
// server mixes the messages of several clients when they meet: statements answer with another client's rows, cursors
// vanish. So that server gets exactly one connection, from here, and this gate hands it to one client from its first
// message until the answer is complete and no transaction is open, as a pooler in transaction mode does.
//
// What follows from one session: session settings, named statements and advisory locks would be shared, so nobody uses
// them; a client that holds a transaction open holds everybody up, so it is cut off when it idles; COPY and cancel
// requests are not supported.

import { createConnection, createServer, type Server, type Socket } from 'node:net'
import {
  EMBEDDED_CLIENTS_MAX,
  EMBEDDED_HOLD_IDLE_MS_MAX,
  EMBEDDED_SILENCE_GRACE_MS,
  EMBEDDED_SILENCE_MS_MAX,
  EMBEDDED_UNREAD_BYTES_MAX,
} from '../../shared/limits.ts'
import {
  CANCEL_REQUEST,
  ClientMessages,
  fatalErrorMessage,
  GSS_REQUEST,
  PROTOCOL_3,
  QUERY,
  AnswerScanner,
  ROLLBACK_MESSAGE,
  SSL_REQUEST,
  startupMessage,
  STATUS_IDLE,
  SYNC,
  SYNC_MESSAGE,
  TERMINATE,
} from './wire-protocol.ts'

interface Client {
  readonly socket: Socket
  readonly messages: ClientMessages
  hasStarted: boolean
  isGone: boolean
}

/** Who has the session, and how far the conversation is. */
interface Turn {
  readonly client: Client
  /** Messages went out that nothing will answer for good before a Sync follows. */
  isUnsynced: boolean
  isAwaitingReady: boolean
  /** The transaction status of the last ReadyForQuery. */
  status: number
  /** Ends a client that idles with the session, or a session that does not answer. */
  timer: NodeJS.Timeout | undefined
}

export class EmbeddedPostgresGate {
  readonly #session: Socket
  readonly #onLost: (reason: string) => void
  /** The store's answer to the start-up message, repeated to every client. */
  readonly #greeting: Buffer
  readonly #server: Server
  readonly #scanner = new AnswerScanner()
  readonly #clients = new Set<Client>()
  readonly #waiting = new Set<Client>()
  #turn: Turn | undefined
  #isClosing = false

  private constructor(session: Socket, greeting: Buffer, onLost: (reason: string) => void) {
    this.#session = session
    this.#onLost = onLost
    this.#greeting = greeting
    this.#server = createServer((socket) => this.#onConnection(socket))
    session.on('data', (chunk) => this.#onAnswer(chunk))
  }

  /** Opens the session at the store's socket server. `onLost` is called when the store cannot go on. */
  static async open(sessionPath: string, onLost: (reason: string) => void): Promise<EmbeddedPostgresGate> {
    const session = createConnection(sessionPath)
    const gate = new EmbeddedPostgresGate(session, await greetingOf(session), onLost)
    session.on('error', () => {})
    session.once('close', () => {
      if (!gate.#isClosing) onLost('its session ended')
    })
    return gate
  }

  listen(socketPath: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(socketPath, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }

  /** Sends every client away; the one whose statement runs gets its answer first. */
  async close(): Promise<void> {
    this.#isClosing = true
    const isClosed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const client of this.#clients) {
      if (this.#turn?.client !== client || !this.#turn.isAwaitingReady) sendAway(client)
    }
    await isClosed
    this.#session.destroy()
  }

  #onConnection(socket: Socket): void {
    if (this.#clients.size >= EMBEDDED_CLIENTS_MAX) {
      socket.on('error', () => {})
      socket.end(
        fatalErrorMessage('53300', `The embedded store serves ${EMBEDDED_CLIENTS_MAX} clients at most.`),
      )
      return
    }
    const client: Client = { socket, messages: new ClientMessages(), hasStarted: false, isGone: false }
    this.#clients.add(client)
    socket.on('error', () => {})
    socket.on('data', (chunk) => this.#onRequest(client, chunk))
    socket.on('close', () => {
      client.isGone = true
      this.#clients.delete(client)
      this.#waiting.delete(client)
      if (this.#turn?.client === client) this.#rest(this.#turn)
    })
  }

  #onRequest(client: Client, chunk: Buffer): void {
    client.messages.push(chunk)
    if (!client.hasStarted) this.#start(client)
    if (client.hasStarted) this.#request(client)
    if (client.messages.isBroken) sendAway(client)
  }

  #start(client: Client): void {
    for (;;) {
      const message = client.messages.next(false)
      if (message === undefined) return
      const code = message.readUInt32BE(4)
      if (code === PROTOCOL_3) {
        client.hasStarted = true
        client.socket.write(this.#greeting)
        return
      }
      if (code === CANCEL_REQUEST) {
        client.socket.destroy()
        return
      }
      if (code !== SSL_REQUEST && code !== GSS_REQUEST) {
        sendAway(client)
        return
      }
      client.socket.write('N')
    }
  }

  #request(client: Client): void {
    if (this.#turn?.client === client) {
      this.#forward(this.#turn)
    } else if (client.messages.hasNext(true)) {
      this.#waiting.add(client)
      this.#startTurn()
    }
  }

  #startTurn(): void {
    const [client] = this.#waiting
    if (this.#turn !== undefined || client === undefined) return
    this.#waiting.delete(client)
    this.#turn = {
      client,
      isUnsynced: false,
      isAwaitingReady: false,
      status: STATUS_IDLE,
      timer: undefined,
    }
    this.#forward(this.#turn)
  }

  /** Passes on the client's messages up to the one whose answer ends with ReadyForQuery. */
  #forward(turn: Turn): void {
    while (!turn.isAwaitingReady && !turn.client.isGone) {
      const message = turn.client.messages.next(true)
      if (message === undefined) break
      const type = message[0]
      if (type === TERMINATE) {
        turn.client.socket.destroySoon()
        turn.client.isGone = true
      } else {
        this.#send(turn, message)
      }
    }
    this.#rest(turn)
  }

  #send(turn: Turn, message: Buffer): void {
    turn.isAwaitingReady = message[0] === QUERY || message[0] === SYNC
    turn.isUnsynced = !turn.isAwaitingReady
    this.#session.write(message)
  }

  /** What comes next when nothing more can be passed on: an answer, the client's next message, or another turn. */
  #rest(turn: Turn): void {
    clearTimeout(turn.timer)
    if (turn.isAwaitingReady) {
      this.#watchSession(turn)
    } else if (turn.client.isGone && turn.isUnsynced) {
      this.#send(turn, SYNC_MESSAGE)
      this.#watchSession(turn)
    } else if (turn.client.isGone && turn.status !== STATUS_IDLE) {
      this.#send(turn, ROLLBACK_MESSAGE)
      this.#watchSession(turn)
    } else if (turn.isUnsynced || turn.status !== STATUS_IDLE) {
      turn.timer = setTimeout(() => sendAway(turn.client), EMBEDDED_HOLD_IDLE_MS_MAX)
    } else {
      this.#endTurn(turn.client)
    }
  }

  /** PGlite computes in this thread, so a timer that fires late says nothing yet: the answer may come right after. */
  #watchSession(turn: Turn): void {
    turn.timer = setTimeout(() => {
      turn.timer = setTimeout(() => this.#onLost('it does not answer'), EMBEDDED_SILENCE_GRACE_MS)
    }, EMBEDDED_SILENCE_MS_MAX)
  }

  #endTurn(client: Client): void {
    this.#turn = undefined
    if (this.#isClosing) sendAway(client)
    else if (!client.isGone && client.messages.hasNext(true)) this.#waiting.add(client)
    this.#startTurn()
  }

  #onAnswer(chunk: Buffer): void {
    const turn = this.#turn
    if (turn === undefined) return
    const { client } = turn
    if (!client.isGone) {
      client.socket.write(chunk)
      // The session must not wait for a client that does not read; its answers are bounded by the store's batches.
      if (client.socket.writableLength > EMBEDDED_UNREAD_BYTES_MAX) client.socket.destroy()
    }
    const { readyStatus, fatalError } = this.#scanner.scan(chunk)
    // PGlite goes on after a panic, and answers everything with nonsense.
    if (fatalError !== undefined) this.#onLost(fatalError)
    if (readyStatus === undefined) return
    clearTimeout(turn.timer)
    turn.isAwaitingReady = false
    turn.status = readyStatus
    if (readyStatus === STATUS_IDLE) this.#rest(turn)
    else this.#forward(turn)
  }
}

/** Says the start-up message and waits for all of its answer. */
function greetingOf(session: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const scanner = new AnswerScanner()
    const chunks: Buffer[] = []
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk)
      if (scanner.scan(chunk).readyStatus === undefined) return
      session.off('data', onData)
      session.off('error', reject)
      resolve(Buffer.concat(chunks))
    }
    session.on('data', onData)
    session.once('error', reject)
    session.write(startupMessage('postgres', 'postgres'))
  })
}

function sendAway(client: Client): void {
  client.socket.end(fatalErrorMessage('57P01', 'The embedded store ends this connection.'))
  client.socket.destroySoon()
}
