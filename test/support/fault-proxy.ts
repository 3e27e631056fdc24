// A TCP or Unix-socket proxy in front of a server that simulates faults: refusing, cutting, going silent, or accepting and closing
// at once. It can also delay PostgreSQL's cancel requests.

import { rm } from 'node:fs/promises'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'

type Target = { readonly path: string } | { readonly host: string; readonly port: number }

/** Length and code of PostgreSQL's CancelRequest; process and secret follow. */
const CANCEL_REQUEST_HEAD = Buffer.from('0000001004d2162e', 'hex')

export class FaultProxy {
  readonly #target: Target
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  /** Held cancel requests; undefined while they are not held. */
  #heldCancels: (() => Promise<void>)[] | undefined
  #listenAt: { path: string } | { host: string; port: number }
  #server: Server | undefined
  #isClosingAtOnce = false
  /** Number of connections made to the proxy. */
  connectionCount = 0

  private constructor(target: Target, listenAt: { path: string } | { host: string; port: number }) {
    this.#target = target
    this.#listenAt = listenAt
  }

  /** In front of a Unix socket, at another path. */
  static async unix(targetPath: string, path: string): Promise<FaultProxy> {
    const proxy = new FaultProxy({ path: targetPath }, { path })
    await proxy.accept()
    return proxy
  }

  /** In front of a TCP server, at a free port. */
  static async tcp(host: string, port: number): Promise<FaultProxy> {
    const proxy = new FaultProxy({ host, port }, { host: '127.0.0.1', port: 0 })
    await proxy.accept()
    return proxy
  }

  /** In front of a Unix socket, at a free TCP port. */
  static async toSocket(path: string): Promise<FaultProxy> {
    const proxy = new FaultProxy({ path }, { host: '127.0.0.1', port: 0 })
    await proxy.accept()
    return proxy
  }

  get port(): number {
    return 'port' in this.#listenAt ? this.#listenAt.port : 0
  }

  /** Listens, again at the same address. */
  async accept(): Promise<void> {
    if ('path' in this.#listenAt) await rm(this.#listenAt.path, { force: true })
    const server = createServer((client) => this.#onClient(client))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#listenAt, resolve)
    })
    if ('port' in this.#listenAt) {
      this.#listenAt = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
    }
    this.#server = server
  }

  /** Cuts every connection and refuses new ones. */
  async refuse(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    const isClosed = new Promise((resolve) => server?.close(resolve))
    this.cut()
    if (server !== undefined) await isClosed
  }

  /** Cuts every connection; new ones are served. */
  cut(): void {
    for (const [client, upstream] of this.#pairs) {
      client.destroy()
      upstream.destroy()
    }
  }

  /** Forwards nothing more on existing connections; new ones are served. */
  silence(): void {
    for (const [client, upstream] of this.#pairs) {
      client.unpipe(upstream)
      upstream.unpipe(client)
      client.pause()
      upstream.pause()
    }
  }

  /** Accepts connections and closes them at once, or serves them again. */
  closeAtOnce(isClosingAtOnce: boolean): void {
    this.#isClosingAtOnce = isClosingAtOnce
  }

  /** Holds cancel requests from now on. */
  holdCancels(): void {
    this.#heldCancels = []
  }

  get heldCancelCount(): number {
    return this.#heldCancels?.length ?? 0
  }

  /** Forwards the held cancel requests; resolves when the server has handled them. */
  async releaseCancels(): Promise<void> {
    const held = this.#heldCancels ?? []
    this.#heldCancels = undefined
    await Promise.all(held.map((pass) => pass()))
  }

  #onClient(client: Socket): void {
    this.connectionCount += 1
    if (this.#isClosingAtOnce) {
      client.on('error', () => {})
      client.resume()
      client.end()
      return
    }
    if (this.#heldCancels === undefined) this.#join(client)
    else client.once('data', (first: Buffer) => this.#joinUnlessCancel(client, first))
  }

  #joinUnlessCancel(client: Socket, first: Buffer): void {
    if (!first.subarray(0, CANCEL_REQUEST_HEAD.length).equals(CANCEL_REQUEST_HEAD)) {
      this.#join(client).write(first)
      return
    }
    client.on('error', () => {})
    this.#heldCancels?.push(async () => {
      const upstream = this.#join(client)
      const isOver = new Promise((resolve) => upstream.once('close', resolve))
      upstream.write(first)
      await isOver
    })
  }

  #join(client: Socket): Socket {
    const upstream = createConnection(this.#target)
    const pair = [client, upstream] as const
    this.#pairs.add(pair)
    for (const [socket, other] of [pair, [upstream, client] as const]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#pairs.delete(pair)
        other.destroy()
      })
    }
    client.pipe(upstream)
    upstream.pipe(client)
    return upstream
  }
}
