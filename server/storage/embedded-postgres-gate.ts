// Lets many clients share the embedded store's only session, one at a time. PGlite is a single session, and its socket server mixes
// the messages of concurrent clients: statements return another client's rows, cursors vanish. So that server gets one connection,
// from this gate. The gate gives it to one client from its first message until the answer is complete and no transaction is open,
// like a pooler in transaction mode.
//
// Consequences: session settings and advisory locks would be shared, so no client uses them. Names of prepared statements are
// unique over all clients, and a client's statements are closed when it is gone. An open transaction blocks all clients, so an idle
// client that holds one is disconnected. COPY and cancel requests are not supported.

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
/** A client that holds the session and sends nothing for this long is disconnected. */
const EMBEDDED_HOLD_IDLE_MS_MAX = 30_000
/** A session that leaves a statement unanswered for this long is ended and started again. */
const EMBEDDED_SILENCE_MS_MAX = 60_000
const EMBEDDED_SILENCE_GRACE_MS = 1_000

/** Prepared statements of one client, which needs a few dozen; a client with more is disconnected. */
const STATEMENTS_MAX = 500

/** The client that has the session, and the state of its conversation. */
interface Turn {
  readonly client: GateClient
  /** Messages were sent whose answer is complete only after a Sync. */
  isUnsynced: boolean
  isAwaitingReady: boolean
  /** The transaction status of the last ReadyForQuery. */
  status: number
  /** Disconnects a client that idles with the session, or ends a session that does not answer. */
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
  /** Clients that are gone but still have prepared statements. */
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

  /** Opens the session at the store's socket server. `onLost` is called if the store can no longer be used. */
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

  /** Disconnects every client; a client with a running statement gets its answer first. */
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

  /** Forwards the client's messages up to the one whose answer ends with ReadyForQuery. */
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

  /** Sends in one piece: every write is a system call and a turn of the reading thread. */
  #send(turn: Turn, messages: readonly Buffer[]): void {
    const last = messages.at(-1)
    if (last === undefined) return
    turn.isAwaitingReady = endsInReady(last)
    turn.isUnsynced = !turn.isAwaitingReady
    this.#session.write(messages.length === 1 ? last : Buffer.concat(messages))
  }

  /** Waits for what comes next: an answer, the client's next message, or another client's turn. */
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

  /** PGlite computes in this thread, so a timer that fires late is no proof: the answer may come right after it. */
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
      // The session must not wait for a client that does not read. The store's batches bound the size of answers.
      if (client.socket.writableLength > EMBEDDED_UNREAD_BYTES_MAX) client.socket.destroy()
    }
    const { readyStatus, fatalError } = this.#scanner.scan(chunk)
    // PGlite continues after a panic, but its answers are garbage.
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

/** Sends the start-up message and waits for the complete answer. */
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
