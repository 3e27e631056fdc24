// A Lunex on loopback: its list of markets, its socket, and its true books at any time.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { type WebSocket, WebSocketServer } from 'ws'

/** Levels in cents and contracts, best first. */
export interface TrueBook {
  readonly bids: readonly (readonly [number, number])[]
  readonly asks: readonly (readonly [number, number])[]
}

type Side = 'bid' | 'ask'

export class LocalLunex {
  readonly markets: readonly string[]
  /** Every message as sent. */
  readonly sent: string[] = []
  /** By market: the book since each time, ns, ascending. */
  readonly #history = new Map<string, { readonly ts: bigint; readonly book: TrueBook }[]>()
  readonly #levels = new Map<string, Record<Side, Map<number, number>>>()
  #sockets: WebSocket[] = []
  #followed: readonly string[] = []
  #lastUs = 0

  constructor(markets: readonly string[]) {
    this.markets = markets
    for (const id of markets) this.#levels.set(id, { bid: new Map([[40, 10]]), ask: new Map([[45, 7]]) })
  }

  async start(t: TestContext): Promise<{ readonly socketUrl: string; readonly restUrl: string }> {
    const http = createServer((request, response) => {
      const place = new URL(request.url ?? '', 'http://lunex').searchParams.get('place')
      response.end(JSON.stringify(this.markets.filter((id) => id.startsWith(`${place}~`))))
    })
    const server = new WebSocketServer({ server: http })
    server.on('connection', (socket) => {
      this.#sockets.push(socket)
      socket.on('message', (data: Buffer) => {
        const { follow }: { follow: readonly string[] } = JSON.parse(data.toString('utf8'))
        for (const id of follow) if (!this.#followed.includes(id)) this.#tellBook(id)
        this.#followed = follow
      })
    })
    http.listen(0, '127.0.0.1')
    await once(http, 'listening')
    t.after(() => {
      for (const client of server.clients) client.terminate()
      http.close()
    })
    const { port } = http.address() as AddressInfo
    return { socketUrl: `ws://127.0.0.1:${port}`, restUrl: `http://127.0.0.1:${port}` }
  }

  get isFollowed(): boolean {
    return this.markets.every((id) => this.#followed.includes(id))
  }

  /** Changes a level and sends the change. */
  change(id: string, side: Side, cents: number, size: number): void {
    const levels = this.#levels.get(id)![side]
    if (size === 0) levels.delete(cents)
    else levels.set(cents, size)
    const time = this.#note(id)
    this.#send({ lunex: 1, type: 'change', book: id, time, side, cents, size })
  }

  /** Resolves when everything sent has been read. */
  async flush(): Promise<void> {
    const socket = this.#sockets.at(-1)!
    socket.ping()
    await once(socket, 'pong')
  }

  /** The book at `ts`; undefined before the first. */
  bookAt(id: string, ts: bigint): TrueBook | undefined {
    return this.#history.get(id)?.findLast((entry) => entry.ts <= ts)?.book
  }

  /** Time of the last change, ns. */
  get lastTs(): bigint {
    return BigInt(this.#lastUs) * 1_000n
  }

  #tellBook(id: string): void {
    const { bid, ask } = this.#levels.get(id)!
    const time = this.#note(id)
    this.#send({ lunex: 1, book: id, time, bids: [...bid], asks: [...ask] })
  }

  #note(id: string): number {
    this.#lastUs = Math.max(this.#lastUs + 1, Date.now() * 1_000)
    const { bid, ask } = this.#levels.get(id)!
    const bids = [...bid].toSorted(([a], [b]) => b - a)
    const asks = [...ask].toSorted(([a], [b]) => a - b)
    const history = this.#history.get(id) ?? []
    this.#history.set(id, [...history, { ts: this.lastTs, book: { bids, asks } }])
    return this.#lastUs
  }

  #send(message: object): void {
    const text = JSON.stringify(message)
    this.sent.push(text)
    this.#sockets.at(-1)!.send(text)
  }
}
