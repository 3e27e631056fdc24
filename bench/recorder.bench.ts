// The load that the recorder sustains: a loopback exchange sends deltas at a steady rate. Measures processor time of the recorder's
// process (all its threads, including the fold), its memory, the age of messages on arrival, and the lag of the lake at the end.
// Then the cost of trades: the same deltas with and without trades between them, in turns.

import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { readProcessMemory } from './process-status.ts'
import { alternate, median } from './measure.ts'
import type { RecorderChildFigures } from './recorder-child.ts'
import type { BenchReport, BenchSize } from './report.ts'

const SIZES = {
  smoke: { perSecond: 2_000, seconds: 1, tradeRounds: 1, tradeSeconds: 1 },
  full: { perSecond: 20_000, seconds: 30, tradeRounds: 5, tradeSeconds: 15 },
} as const
/** Book messages per trade. */
const TRADE_EVERY = 20
const SERIES = ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHMIA', 'KXHIGHAUS']
const MARKETS_PER_SERIES = 6
const TICKERS = SERIES.flatMap((series) =>
  Array.from({ length: MARKETS_PER_SERIES }, (_, index) => `${series}-26NOV20-B${40 + index}.5`),
)
const TRADE_SID = 2
const STEP_MS = 10
const CATCH_UP_MS_MAX = 120_000

interface Command {
  readonly id: number
  readonly params: { readonly channels: readonly [string]; readonly market_tickers: readonly string[] }
}

interface Sending {
  readonly perSecond: number
  readonly seconds: number
  /** A trade follows every delta whose number is a multiple of this. */
  readonly tradeEvery: number
}

/** Figures of the recorder's process before the first message, after the last one, and after all were folded. */
interface Recording {
  readonly before: RecorderChildFigures
  readonly during: RecorderChildFigures
  readonly end: RecorderChildFigures
  /** Deltas. */
  readonly sent: number
  readonly sentMs: number
  readonly caughtUpMs: number
  readonly peakBytes: number
}

/** Deltas that keep every level at or above zero. */
class DeltaStream {
  readonly #random = new SeededRandom(20_000, 'recorder bench')
  readonly #levels = new Map<string, number>()
  #seq = 0
  #tradeSeq = 0

  snapshot(ticker: string): string {
    const msg = { market_ticker: ticker, yes_dollars_fp: [['0.0100', '1.00']] }
    return JSON.stringify({ type: 'orderbook_snapshot', sid: 1, seq: ++this.#seq, msg })
  }

  delta(): string {
    const ticker = TICKERS[Math.floor(this.#random.unit() * TICKERS.length)]!
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

  trade(): string {
    const ticker = TICKERS[Math.floor(this.#random.unit() * TICKERS.length)]!
    const cents = 1 + Math.floor(this.#random.unit() * 99)
    const seq = ++this.#tradeSeq
    const msg = {
      trade_id: `0445cdcb-7f7e-4a3e-9d35-${String(seq).padStart(12, '0')}`,
      market_ticker: ticker,
      yes_price_dollars: (cents / 100).toFixed(4),
      no_price_dollars: (1 - cents / 100).toFixed(4),
      count_fp: `${1 + Math.floor(this.#random.unit() * 50)}.00`,
      taker_outcome_side: 'yes',
      taker_book_side: 'bid',
      is_block_trade: false,
      ts_ms: Date.now(),
    }
    return JSON.stringify({ type: 'trade', sid: TRADE_SID, seq, msg })
  }
}

export async function runRecorderBench(size: BenchSize): Promise<BenchReport> {
  const { perSecond, seconds, tradeRounds, tradeSeconds } = SIZES[size]
  const { before, during, end, sent, sentMs, caughtUpMs, peakBytes } = await record({
    perSecond,
    seconds,
    tradeEvery: Infinity,
  })
  const costOf = async (tradeEvery: number): Promise<number> => {
    const recording = await record({ perSecond, seconds: tradeSeconds, tradeEvery })
    return recording.end.cpuMs - recording.before.cpuMs
  }
  const [without = [], withTrades = []] = await alternate(tradeRounds, 0, [
    async () => costOf(Infinity),
    async () => costOf(TRADE_EVERY),
  ])
  const ratios = withTrades.map((cost, round) => cost / without[round]!)
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
      { name: 'peak memory', value: peakBytes / 1e6, unit: 'MB', atMost: 500 },
      { name: 'age of messages at the end', value: during.metrics.lagMs ?? 0, unit: 'ms' },
      { name: 'waiting for the disk at the end', value: during.metrics.queuedBytes / 1e6, unit: 'MB' },
      { name: 'from receipt to disk', value: during.metrics.syncDelayMs, unit: 'ms' },
      { name: 'folded after the end', value: caughtUpMs, unit: 'ms', atMost: 10_000 },
      { name: 'last publication', value: metrics.fold?.publishMs ?? 0, unit: 'ms' },
      { name: 'processor time with trades / without', value: median(ratios), unit: '×', atMost: 1.1 },
    ],
    hashes: {},
    notes: [
      `${TICKERS.length} markets of ${SERIES.length} series for ${seconds} s`,
      `one trade to ${TRADE_EVERY} deltas, ${tradeRounds} pairs of ${tradeSeconds} s: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`,
    ],
  }
}

/** Starts a recorder, sends it deltas, and waits until they are folded. */
async function record(sending: Sending): Promise<Recording> {
  const root = await mkdtemp(join(tmpdir(), 'bookcast-bench-recorder-'))
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  await once(server, 'listening')
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/trade-api/ws/v2`
  const child = fork(new URL('./recorder-child.js', import.meta.url), [url, root, ...TICKERS])
  try {
    const stream = new DeltaStream()
    const socket = await subscribed(server, stream)
    const before = await ask(child)
    const startMs = performance.now()
    const sent = await sendSteadily(socket, stream, sending)
    const sentMs = performance.now() - startMs
    const during = await ask(child)
    const memory = await readProcessMemory(child.pid!)
    // The answers to the subscriptions belong to no chain. A trade shows that its connection's chains are alive.
    const trades = Math.floor(sent / sending.tradeEvery)
    const caughtUpMs = await catchUp(child, TICKERS.length + sent + trades)
    const end = await ask(child)
    return { before, during, end, sent, sentMs, caughtUpMs, peakBytes: memory?.peakBytes ?? 0 }
  } finally {
    if (child.connected) child.send('stop')
    await once(child, 'exit')
    for (const client of server.clients) client.terminate()
    server.close()
    await rm(root, { recursive: true, force: true })
  }
}

/** Answers the subscriptions to books and to trades. */
async function subscribed(server: WebSocketServer, stream: DeltaStream): Promise<WebSocket> {
  const [socket] = (await once(server, 'connection')) as [WebSocket]
  for await (const [data] of on(socket, 'message')) {
    const { id, params }: Command = JSON.parse((data as Buffer).toString('utf8'))
    const [channel] = params.channels
    const isTrade = channel === 'trade'
    if (!isTrade && channel !== 'orderbook_delta') continue
    socket.send(JSON.stringify({ id, type: 'subscribed', msg: { channel, sid: isTrade ? TRADE_SID : 1 } }))
    if (isTrade) break
    for (const ticker of params.market_tickers) socket.send(stream.snapshot(ticker))
  }
  return socket
}

async function sendSteadily(
  socket: WebSocket,
  stream: DeltaStream,
  { perSecond, seconds, tradeEvery }: Sending,
): Promise<number> {
  const startMs = performance.now()
  let sent = 0
  while (sent < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, Math.floor(((performance.now() - startMs) / 1000) * perSecond))
    while (sent < due) {
      socket.send(stream.delta())
      sent++
      if (sent % tradeEvery === 0) socket.send(stream.trade())
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
