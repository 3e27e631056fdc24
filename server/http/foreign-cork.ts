// A cork that belongs to no answer. A write longer than the library's cork buffer is safe only outside the cork of its own
// response (see uws-server.ts), but the library prints a warning for every write outside any cork. It checks only whether
// the callback of some cork is running, so the cork of another response is enough. The process requests that response
// itself over the loopback interface and never answers it.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { HttpResponse } from 'uWebSockets.js'
import { withinTime } from '../../shared/within-time.ts'
import { listen, uWS } from './uws-library.ts'

/** How long a starting server waits for the connection that it opens to itself. */
const FOREIGN_CORK_TIMEOUT_MS = 5_000

const HOST = '127.0.0.1'

export type ForeignCork = Awaited<ReturnType<typeof openForeignCork>>

/** Opens the connection that holds the cork; no other client can connect to it afterwards. */
export async function openForeignCork() {
  const app = uWS.App()
  const path = `/${randomUUID()}`
  let held: HttpResponse | undefined
  const asked = new Promise<true>((resolve) => {
    app.get(path, (response) => {
      held = response
      response.onAborted(() => (held = undefined))
      resolve(true)
    })
  })
  const listening = await listen(app, HOST, 0)
  if (listening === false) throw new Error(`cannot listen on ${HOST}`)
  const socket = connect(uWS.us_socket_local_port(listening), HOST).unref()
  const close = (): void => {
    held = undefined
    socket.destroy()
    app.close()
  }
  try {
    await once(socket, 'connect')
    socket.on('error', () => socket.destroy())
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
    // The kernel completes the connect by itself, but without a free file descriptor the connection is never accepted.
    if ((await withinTime(asked, FOREIGN_CORK_TIMEOUT_MS)) === undefined)
      throw new Error(`no connection to ${HOST} was accepted: are there file descriptors left?`)
    uWS.us_listen_socket_close(listening)
  } catch (error) {
    close()
    throw error
  }
  return {
    /** Runs `action`, which may write to other responses. Call it only while `isHeld`. */
    run: (action: () => void): void => void held?.cork(action),
    /** False once its connection is lost. */
    isHeld: (): boolean => held !== undefined,
    close,
  }
}
