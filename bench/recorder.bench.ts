// What the recorder holds: a loopback exchange sends deltas at a steady rate; measured are the processor time of the
// recorder's process (all its threads, the fold included), its memory, how old messages are when they come, and
// how far the lake is behind at the end.

import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { readProcessMemory } from './process-status.ts'
import type { RecorderChildFigures } from './recorder-child.ts'
import type { BenchReport, BenchSize } from './report.ts'

const SIZES = {
  smoke: { perSecond: 2_000, seconds: 1 },
  full: { perSecond: 20_000, seconds: 30 },
} as const
const SERIES = ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHMIA', 'KXHIGHAUS']
const MARKETS_PER_SERIES = 6
const STEP_MS = 10
const CATCH_UP_MS_MAX = 120_000

interface Command {
  readonly id: number
  readonly params: { readonly market_tickers: readonly string[] }
}

/** Deltas that keep every level at or above zero. */
class DeltaStream {
  readonly #random = new SeededRandom(20_000, 'recorder bench')
  readonly #levels = new Map<string, number>()
  #seq = 0

  snapshot(ticker: string): string {
    const msg = { market_ticker: ticker, yes_dollars_fp: [['0.0100', '1.00']] }
    return JSON.stringify({ type: 'orderbook_snapshot', sid: 1, seq: ++this.#seq, msg })
  }

  delta(tickers: readonly string[]): string {
    const ticker = tickers[Math.floor(this.#random.unit() * tickers.length)]!
    const cents = 2 + Math.floor(this.#random.unit() * 97)
    const side = cents < 50 ? 'yes' : 'no'
    const key = `${ticker} ${cents}`
    const level = this.#levels.get(key) ?? 0
    const change = level > 0 && this.#random.unit() < 0.5 ? -level : 1 + Math.floor(this.#random.unit() * 50)
    this.#levels.set(key, level + change)
    const nowMs = Date.now()
    return (
      `{"type":"orderbook_delta","sid":1,"seq":${++this.#seq},"msg":{"market_ticker":"${ticker}",` +
      `"market_id":"0445cdcb-7f7e-4a3e-9d35-0d1c6f2f7f10","price_dollars":"${(cents / 100).toFixed(4)}",` +
      `"delta_fp":"${change}.00","side":"${side}","ts":"${new Date(nowMs).toISOString()}","ts_ms":${nowMs}}}`
    )
  }
}

export async function runRecorderBench(size: BenchSize): Promise<BenchReport> {
  const { perSecond, seconds } = SIZES[size]
  const root = await mkdtemp(join(tmpdir(), 'bookcast-bench-recorder-'))
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  await once(server, 'listening')
  const tickers = SERIES.flatMap((series) =>
    Array.from({ length: MARKETS_PER_SERIES }, (_, index) => `${series}-26NOV20-B${40 + index}.5`),
  )
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/trade-api/ws/v2`
  const child = fork(new URL('./recorder-child.js', import.meta.url), [url, root, ...tickers])
  try {
    const stream = new DeltaStream()
    const socket = await subscribed(server, stream)
    const before = await ask(child)
    const startMs = performance.now()
    const sent = await sendSteadily(socket, stream, tickers, perSecond, seconds)
    const sentMs = performance.now() - startMs
    const during = await ask(child)
    const memory = await readProcessMemory(child.pid!)
    // The answer to the subscription belongs to none of its chains.
    const caughtUpMs = await catchUp(child, tickers.length + sent)
    const end = await ask(child)
    const { metrics } = end
    const gaps = Object.values(metrics.fold?.gaps ?? {}).reduce((sum, count) => sum + count, 0)
    return {
      benchmark: 'recorder',
      size,
      figures: [
        { name: 'messages sent', value: sent, unit: '' },
        { name: 'rate', value: sent / (sentMs / 1000), unit: 'messages/s', atLeast: perSecond * 0.98 },
        { name: 'messages received', value: metrics.frames, unit: '' },
        { name: 'gaps', value: gaps, unit: '', atMost: 0 },
        {
          name: 'processor, all threads',
          value: (during.cpuMs - before.cpuMs) / sentMs,
          unit: 'cores',
          atMost: 1,
        },
        { name: 'peak memory', value: (memory?.peakBytes ?? 0) / 1e6, unit: 'MB', atMost: 500 },
        { name: 'age of messages at the end', value: during.metrics.lagMs ?? 0, unit: 'ms' },
        { name: 'waiting for the disk at the end', value: during.metrics.queuedBytes / 1e6, unit: 'MB' },
        { name: 'from receipt to disk', value: during.metrics.syncDelayMs, unit: 'ms' },
        { name: 'folded after the end', value: caughtUpMs, unit: 'ms', atMost: 10_000 },
        { name: 'last publication', value: metrics.fold?.publishMs ?? 0, unit: 'ms' },
      ],
      hashes: {},
      notes: [`${tickers.length} markets of ${SERIES.length} series for ${seconds} s`],
    }
  } finally {
    if (child.connected) child.send('stop')
    await once(child, 'exit')
    for (const client of server.clients) client.terminate()
    server.close()
    await rm(root, { recursive: true, force: true })
  }
}

async function subscribed(server: WebSocketServer, stream: DeltaStream): Promise<WebSocket> {
  const [socket] = (await once(server, 'connection')) as [WebSocket]
  const [data] = (await once(socket, 'message')) as [Buffer]
  const { id, params }: Command = JSON.parse(data.toString('utf8'))
  socket.send(JSON.stringify({ id, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } }))
  for (const ticker of params.market_tickers) socket.send(stream.snapshot(ticker))
  return socket
}

async function sendSteadily(
  socket: WebSocket,
  stream: DeltaStream,
  tickers: readonly string[],
  perSecond: number,
  seconds: number,
): Promise<number> {
  const startMs = performance.now()
  let sent = 0
  while (sent < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, Math.floor(((performance.now() - startMs) / 1000) * perSecond))
    while (sent < due) {
      socket.send(stream.delta(tickers))
      sent++
    }
    await new Promise((resolve) => {
      setTimeout(resolve, STEP_MS)
    })
  }
  return sent
}

/** Milliseconds until the fold has read all `messages`. */
async function catchUp(child: ChildProcess, messages: number): Promise<number> {
  const startMs = performance.now()
  for (;;) {
    const { metrics } = await ask(child)
    const elapsedMs = performance.now() - startMs
    if ((metrics.fold?.messages ?? 0) >= messages) return elapsedMs
    if (elapsedMs > CATCH_UP_MS_MAX) throw new Error('the fold does not catch up')
    await new Promise((resolve) => {
      setTimeout(resolve, 20)
    })
  }
}

async function ask(child: ChildProcess): Promise<RecorderChildFigures> {
  child.send('figures')
  const [figures] = (await once(child, 'message')) as [RecorderChildFigures]
  return figures
}
