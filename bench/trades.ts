// Trades over HTTP as parquet against DuckDB's COPY of the same rows. Server and peer run in this process and take turns, so that
// processor time is that of the process, and other load on the machine slows both alike.

import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { storeServices } from '../server/catalogue/store-services.ts'
import { readServeCall } from '../server/service/config.ts'
import { startServer } from '../server/service/server.ts'
import { openRelationalStore } from '../server/storage/relational-store.ts'
import type { BenchLake } from './bench-lake.ts'
import { alternate, median } from './measure.ts'
import { RecordPeer } from './record-peer.ts'
import type { BenchReport, BenchSize } from './report.ts'
import { TRADE_DATES, TRADE_SERIES, writeTrades } from './trade-file.ts'

const SIZES = {
  smoke: { tradesPerDate: 4_000, rounds: 1, warmUps: 0 },
  full: { tradesPerDate: 100_000, rounds: 15, warmUps: 2 },
} as const satisfies Readonly<Record<BenchSize, object>>

interface Cost {
  readonly wallMs: number
  /** Of all threads of the process. */
  readonly cpuMs: number
}

async function costOf(action: () => Promise<void>): Promise<Cost> {
  const [startMs, start] = [performance.now(), process.cpuUsage()]
  await action()
  const { user, system } = process.cpuUsage(start)
  return { wallMs: performance.now() - startMs, cpuMs: (user + system) / 1000 }
}

async function readBody(address: string): Promise<void> {
  const response = await fetch(address)
  let bytes = 0
  for await (const chunk of response.body ?? []) bytes += chunk.length
  if (response.status !== 200 || bytes === 0) throw new Error(`${address}: ${response.status}`)
}

export async function runTrades({ lake }: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { tradesPerDate, rounds, warmUps } = SIZES[size]
  const root = await mkdtemp(join(lake, 'trades-'))
  const paths = await writeTrades(root, tradesPerDate)
  const rows = tradesPerDate * TRADE_DATES.length
  const call = readServeCall(['--lake', root, '--port', '0', '--log-level', 'silent'], {})
  if (call === 'help') throw new Error('the server was asked for help')
  const store = await openRelationalStore({ databaseUrl: null, dataDirectory: join(root, 'data') })
  await store.migrate()
  const server = await startServer(call.config, {
    logger: pino({ level: 'silent' }),
    store: storeServices(store.postgres),
    storeAddress: store.postgres.address,
  })
  const peer = await RecordPeer.start(paths[0]!)
  try {
    const query = `series=${TRADE_SERIES}&from=${TRADE_DATES[0]}&to=${TRADE_DATES.at(-1)}&format=parquet&limit=${rows}`
    const address = `http://127.0.0.1:${server.port}/api/v1/trades?${query}`
    const [answers = [], copies = []] = await alternate(rounds, warmUps, [
      () => costOf(() => readBody(address)),
      () => costOf(() => peer.copyTrades(paths, rows, join(root, 'copy.parquet'))),
    ])
    const [wallMs, copyWallMs] = [answers, copies].map((costs) => median(costs.map((cost) => cost.wallMs)))
    const [cpuMs, copyCpuMs] = [answers, copies].map((costs) => median(costs.map((cost) => cost.cpuMs)))
    return {
      benchmark: 'trades',
      size,
      figures: [
        { name: `${rows} trades as parquet`, value: wallMs!, unit: 'ms' },
        { name: 'COPY of the same rows', value: copyWallMs!, unit: 'ms' },
        { name: 'speed of COPY that is reached', value: copyWallMs! / wallMs!, unit: '×', atLeast: 0.85 },
        { name: 'processor time of the answer', value: cpuMs!, unit: 'ms' },
        { name: 'processor time of COPY', value: copyCpuMs!, unit: 'ms' },
        { name: 'the latter over the former', value: copyCpuMs! / cpuMs!, unit: '×', atLeast: 0.85 },
      ],
      hashes: {},
      notes: ['The processor time of the answer has the client that reads it and throws it away.'],
    }
  } finally {
    await peer.close()
    await server.close()
    await store.close()
    await rm(root, { recursive: true, force: true })
  }
}
