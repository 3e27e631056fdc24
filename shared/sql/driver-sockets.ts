// The TCP or Unix sockets under the driver's connections. Two things the driver cannot do are done here: to drop
// connections whose server has gone silent (it would only say goodbye and wait), and to fail when a server accepts
// connections and closes them without a word, as a proxy without a backend does (it would try again for ever).

import { createConnection, Socket } from 'node:net'

/** Connections in a row that a server may close without a word before it counts as down. */
const STORE_SILENT_CLOSES_MAX = 2
/** All that is written to tell a server that a statement is given up; it never answers that. */
const CANCEL_REQUEST_BYTES = 16

/** The server as the driver read it from its options. Of several hosts only the first is used. */
interface DriverTarget {
  /** A Unix socket, or something empty. */
  readonly path?: string | false | undefined
  readonly host: readonly string[]
  readonly port: readonly number[]
}

export class DriverSockets {
  readonly #open = new Set<Socket>()
  #silentCloses = 0

  /** The driver's `socket` option. The socket may still be connecting; what is written waits for it. */
  readonly create = (target: DriverTarget): Socket => {
    // Not by a listener: the driver removes all of them when it starts TLS.
    for (const socket of this.#open) if (socket.destroyed) this.#open.delete(socket)
    const socket = this.#silentCloses < STORE_SILENT_CLOSES_MAX ? this.#connect(target) : this.#refuse()
    this.#open.add(socket)
    return socket
  }

  /** Cuts every connection at once. */
  destroyAll(): void {
    for (const socket of this.#open) socket.destroy()
    this.#open.clear()
  }

  #connect(target: DriverTarget): Socket {
    const socket = connect(target)
    socket.once('close', (hadError) => {
      if (socket.bytesWritten === CANCEL_REQUEST_BYTES) return
      const isSilent = socket.bytesRead === 0 && !hadError
      this.#silentCloses = isSilent ? this.#silentCloses + 1 : 0
    })
    return socket
  }

  /** A socket that fails as soon as the driver listens. */
  #refuse(): Socket {
    this.#silentCloses = 0
    const socket = new Socket()
    setImmediate(() => socket.destroy(silentServerError()))
    return socket
  }
}

function connect(target: DriverTarget): Socket {
  if (typeof target.path === 'string' && target.path !== '') return createConnection(target.path)
  const host = target.host[0] ?? 'localhost'
  const port = target.port[0] ?? 5432
  // The driver looks up the TLS server name on the socket.
  return Object.assign(createConnection({ host, port }), { host, port })
}

function silentServerError(): Error {
  return Object.assign(new Error('The server closes every connection without an answer.'), {
    code: 'ECONNRESET',
  })
}
