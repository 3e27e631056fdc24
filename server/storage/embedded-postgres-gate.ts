// Lets many clients use the embedded store's only session, one at a time. PGlite is a single session, and its socket
// server mixes the messages of several clients when they meet: statements answer with another client's rows, cursors
// vanish. So that server gets exactly one connection, from here, and this gate hands it to one client from its first
// message until the answer is complete and no transaction is open, as a pooler in transaction mode does.
//
// What follows from one session: session settings and advisory locks would be shared, so nobody uses them; prepared
// statements have names that no two clients share, and are closed for a client that is gone; a client that holds a
// transaction open holds everybody up, so it is cut off when it idles; COPY and cancel requests are not supported.

import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { EMBEDDED_UNREAD_BYTES_MAX } from '../../shared/limits.ts'
import { GateClient } from './gate-client.ts'
import {
  closeStatementMessage,
  fatalErrorMessage,
  PARSE,
  QUERY,
  AnswerScanner,
  ROLLBACK_MESSAGE,
  startupMessage,
  STATUS_IDLE,
  SYNC,
  SYNC_MESSAGE,
  TERMINATE,
} from './wire-protocol.ts'

/** Connections to the embedded store from this process and its workers. */
export const EMBEDDED_CLIENTS_MAX = 64
/** A client that holds the embedded store's only session and sends nothing for so long is cut off. */
const EMBEDDED_HOLD_IDLE_MS_MAX = 30_000
/** A session of the embedded store that leaves a statement unanswered for so long is ended and started again. */
const EMBEDDED_SILENCE_MS_MAX = 60_000
const EMBEDDED_SILENCE_GRACE_MS = 1_000

/** Prepared statements of one client, which knows a few dozen; one that has more loses its connection with them. */
const STATEMENTS_MAX = 500

/** Who has the session, and how far the conversation is. */
interface Turn {
  readonly client: GateClient
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
  readonly #clients = new Set<GateClient>()
  readonly #waiting = new Set<GateClient>()
  /** Clients that are gone and whose statements are still there. */
  readonly #forgotten = new Set<GateClient>()
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
      if (this.#turn?.client !== client || !this.#turn.isAwaitingReady) client.sendAway()
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
    const client = new GateClient(socket)
    this.#clients.add(client)
    socket.on('error', () => {})
    socket.on('data', (chunk) => this.#onRequest(client, chunk))
    socket.on('close', () => {
      client.isGone = true
      this.#clients.delete(client)
      this.#waiting.delete(client)
      if (client.statements.size > 0) this.#forgotten.add(client)
      if (this.#turn?.client === client) this.#rest(this.#turn)
      else this.#startTurn()
    })
  }

  #onRequest(client: GateClient, chunk: Buffer): void {
    client.messages.push(chunk)
    if (!client.hasStarted) client.start(this.#greeting)
    if (client.hasStarted) this.#request(client)
    if (client.messages.isBroken) client.sendAway()
  }

  #request(client: GateClient): void {
    if (this.#turn?.client === client) {
      this.#forward(this.#turn)
    } else if (client.messages.hasNext(true)) {
      this.#waiting.add(client)
      this.#startTurn()
    }
  }

  #startTurn(): void {
    if (this.#turn !== undefined || this.#isClosing) return
    const [gone] = this.#forgotten
    const [client] = this.#waiting
    if (gone !== undefined) this.#forget(gone)
    else if (client !== undefined) {
      this.#waiting.delete(client)
      this.#forward(this.#beginTurn(client))
    }
  }

  #beginTurn(client: GateClient): Turn {
    this.#turn = {
      client,
      isUnsynced: false,
      isAwaitingReady: false,
      status: STATUS_IDLE,
      timer: undefined,
    }
    return this.#turn
  }

  /** Closes the statements of a client that is gone. */
  #forget(client: GateClient): void {
    this.#forgotten.delete(client)
    const turn = this.#beginTurn(client)
    this.#send(turn, [...[...client.statements].map(closeStatementMessage), SYNC_MESSAGE])
    client.statements.clear()
    this.#watchSession(turn)
  }

  /** Passes on the client's messages up to the one whose answer ends with ReadyForQuery. */
  #forward(turn: Turn): void {
    const { client } = turn
    const messages: Buffer[] = []
    for (let isAnswered = false; !isAnswered && !turn.isAwaitingReady && !client.isGone;) {
      const message = client.messages.next(true)
      if (message === undefined) break
      const type = message[0]
      if (type === TERMINATE) {
        client.socket.destroySoon()
        client.isGone = true
        continue
      }
      if (type === PARSE) client.noteStatement(message)
      messages.push(message)
      isAnswered = endsInReady(message)
    }
    this.#send(turn, messages)
    this.#rest(turn)
  }

  /** In one piece: every write is a system call, and a turn of the thread that reads it. */
  #send(turn: Turn, messages: readonly Buffer[]): void {
    const last = messages.at(-1)
    if (last === undefined) return
    turn.isAwaitingReady = endsInReady(last)
    turn.isUnsynced = !turn.isAwaitingReady
    this.#session.write(messages.length === 1 ? last : Buffer.concat(messages))
  }

  /** What comes next when nothing more can be passed on: an answer, the client's next message, or another turn. */
  #rest(turn: Turn): void {
    clearTimeout(turn.timer)
    if (turn.isAwaitingReady) {
      this.#watchSession(turn)
    } else if (turn.client.isGone && turn.isUnsynced) {
      this.#send(turn, [SYNC_MESSAGE])
      this.#watchSession(turn)
    } else if (turn.client.isGone && turn.status !== STATUS_IDLE) {
      this.#send(turn, [ROLLBACK_MESSAGE])
      this.#watchSession(turn)
    } else if (turn.isUnsynced || turn.status !== STATUS_IDLE) {
      turn.timer = setTimeout(() => turn.client.sendAway(), EMBEDDED_HOLD_IDLE_MS_MAX)
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

  #endTurn(client: GateClient): void {
    this.#turn = undefined
    if (this.#isClosing || client.statements.size > STATEMENTS_MAX) client.sendAway()
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

function endsInReady(message: Buffer): boolean {
  return message[0] === QUERY || message[0] === SYNC
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
