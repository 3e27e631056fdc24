// Lets many clients share the embedded store's only session, one at a time. PGlite is a single session: mixed messages of
// concurrent clients would give a client the rows of another. So the gate gives the session to one client from its first message
// until the answer is complete and no transaction is open, like a pooler in transaction mode.
//
// Consequences: session settings and advisory locks would be shared, so no client uses them. Names of prepared statements are
// unique over all clients, and a client's statements are closed when it is gone. An open transaction blocks all clients, so an idle
// client that holds one is disconnected. COPY and cancel requests are not supported.

import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { PGlite } from '@electric-sql/pglite'
import { GateClient } from './gate-client.ts'
import {
  closeStatementMessage,
  fatalErrorMessage,
  PARSE,
  QUERY,
  readAnswer,
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

/** Prepared statements of one client, which needs a few dozen; a client with more is disconnected. */
const STATEMENTS_MAX = 500

export class EmbeddedPostgresGate {
  readonly #database: PGlite
  readonly #server: Server
  readonly #clients = new Set<GateClient>()
  /** Clients with messages, and those that are gone and left prepared statements. */
  readonly #waiting = new Set<GateClient>()
  /** The client in an open transaction or in the middle of its messages. */
  #holder: GateClient | undefined
  /** Disconnects a holder that sends nothing. */
  #holdTimer: NodeJS.Timeout | undefined
  /** The transaction status at the end of the last answer; undefined if the answer is complete only after a Sync. */
  #status: number | undefined = STATUS_IDLE
  #isServing = false
  #isClosing = false

  /** The caller must not use the database before the gate is closed. */
  constructor(database: PGlite) {
    this.#database = database
    this.#server = createServer()
  }

  async listen(socketPath: string): Promise<void> {
    // Every client gets the store's answer to this one.
    const greeting = await this.#execute(startupMessage('postgres', 'postgres'))
    this.#server.on('connection', (socket) => this.#onConnection(socket, greeting))
    this.#server.listen(socketPath)
    await once(this.#server, 'listening')
  }

  /** Disconnects every client. A statement that has begun is answered before. */
  async close(): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#holdTimer)
    this.#server.close()
    for (const client of this.#clients) client.sendAway()
    await once(this.#server, 'close')
  }

  #onConnection(socket: Socket, greeting: Buffer): void {
    socket.on('error', () => {})
    if (this.#clients.size >= EMBEDDED_CLIENTS_MAX) {
      // A socket that is not read never closes.
      socket.resume()
      socket.end(
        fatalErrorMessage('53300', `The embedded store serves ${EMBEDDED_CLIENTS_MAX} clients at most.`),
      )
      return
    }
    const client = new GateClient(socket)
    this.#clients.add(client)
    socket.on('data', (chunk) => {
      client.messages.push(chunk)
      if (!client.hasStarted) client.start(greeting)
      if (client.hasStarted && client.messages.hasNext(true)) this.#serve(client)
      if (client.messages.isBroken) client.sendAway()
    })
    socket.on('close', () => {
      client.isGone = true
      this.#clients.delete(client)
      this.#waiting.delete(client)
      if (this.#holder === client || client.statements.size > 0) this.#serve(client)
    })
  }

  #serve(client: GateClient): void {
    if (this.#holder !== client) this.#waiting.add(client)
    // Not caught on purpose: the thread ends, and the broken store with it.
    if (!this.#isServing) void this.#serveAll()
  }

  /** Serves one client after another. */
  async #serveAll(): Promise<void> {
    this.#isServing = true
    for (let client = this.#next(); client !== undefined; client = this.#next()) {
      await this.#run(client)
      // Clients that are gone leave the queue in between.
      await setImmediate()
    }
    this.#isServing = false
  }

  /** The client that has the session, if it can go on, or else the one that has waited longest. */
  #next(): GateClient | undefined {
    if (this.#isClosing) return undefined
    const holder = this.#holder
    if (holder !== undefined) return holder.isGone || holder.messages.hasNext(true) ? holder : undefined
    const [client] = this.#waiting
    if (client !== undefined) this.#waiting.delete(client)
    return client
  }

  /** Executes a client's messages until the session is free, or until further messages are needed. */
  async #run(client: GateClient): Promise<void> {
    clearTimeout(this.#holdTimer)
    this.#holder = client
    do {
      const message = client.isGone ? undefined : client.messages.next(true)
      if (message !== undefined) await this.#runMessage(client, message)
      if (client.isGone) await this.#leave(client)
      else if (message === undefined) {
        this.#holdTimer = setTimeout(() => client.sendAway(), EMBEDDED_HOLD_IDLE_MS_MAX)
        return
      }
    } while (this.#status !== STATUS_IDLE)
    this.#holder = undefined
    if (client.statements.size > STATEMENTS_MAX) client.sendAway()
    else if (!client.isGone && client.messages.hasNext(true)) this.#waiting.add(client)
  }

  async #runMessage(client: GateClient, message: Buffer): Promise<void> {
    if (message[0] === TERMINATE) {
      client.socket.destroySoon()
      client.isGone = true
      return
    }
    if (message[0] === PARSE) client.noteStatement(message)
    client.send(await this.#execute(message))
  }

  /** Ends the transaction and closes the statements of a client that is gone. */
  async #leave({ statements }: GateClient): Promise<void> {
    if (this.#status === undefined) await this.#execute(SYNC_MESSAGE)
    if (this.#status !== STATUS_IDLE) await this.#execute(ROLLBACK_MESSAGE)
    for (const name of statements) await this.#execute(closeStatementMessage(name))
    if (statements.size > 0) await this.#execute(SYNC_MESSAGE)
    statements.clear()
  }

  /** The store's answer to one message: no bytes, or whole messages. */
  async #execute(message: Buffer): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    await this.#database.execProtocolRawStream(message, {
      // PGlite never syncs files of a directory.
      syncToFs: false,
      onRawData: (bytes) => void chunks.push(bytes.slice()),
    })
    const answer = Buffer.concat(chunks)
    const { readyStatus, fatalError } = readAnswer(answer)
    // PGlite continues after a panic, but its answers are garbage.
    if (fatalError !== undefined) throw new Error(`PGlite cannot continue: ${fatalError}`)
    // PGlite swallows a trap of WebAssembly, such as a full stack: then the answer is missing or cut.
    if (readyStatus === undefined && (message[0] === QUERY || message[0] === SYNC))
      throw new Error('PGlite cannot continue: it does not answer')
    this.#status = readyStatus
    return answer
  }
}
