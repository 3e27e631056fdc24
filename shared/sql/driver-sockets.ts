// The TCP or Unix sockets of the driver's connections. They add two things that the driver lacks: dropping connections to a silent
// server (the driver would send a terminate message and wait), and an error if a server accepts connections and closes them
// without a response, as a proxy without a backend does (the driver would retry forever).

import { createConnection, Socket } from 'node:net'

/** A server counts as down after it has closed this many consecutive connections without a response. */
const STORE_SILENT_CLOSES_MAX = 2
/** The length of a cancel request, to which a server never responds. */
const CANCEL_REQUEST_BYTES = 16

/** The server's address from the driver's options. Of several hosts, only the first is used. */
interface DriverTarget {
  /** A Unix socket, or an empty value. */
  readonly path?: string | false | undefined
  readonly host: readonly string[]
  readonly port: readonly number[]
}

export class DriverSockets {
  readonly #open = new Set<Socket>()
  #silentCloses = 0

  /** The driver's `socket` option. The socket may still be connecting; writes are queued until then. */
  readonly create = (target: DriverTarget): Socket => {
    // No listener does this, because the driver removes all listeners when it starts TLS.
    for (const socket of this.#open) if (socket.destroyed) this.#open.delete(socket)
    const socket = this.#silentCloses < STORE_SILENT_CLOSES_MAX ? this.#connect(target) : this.#refuse()
    this.#open.add(socket)
    return socket
  }

  /** Destroys every connection at once. */
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

  /** A socket that fails after the driver has added its listeners. */
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
  // The driver reads the TLS server name from the socket.
  return Object.assign(createConnection({ host, port }), { host, port })
}

function silentServerError(): Error {
  return Object.assign(new Error('The server closes every connection without an answer.'), {
    code: 'ECONNRESET',
  })
}
