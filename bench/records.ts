// Candles over HTTP against fastify with DuckDB: one day of one market as json, and an export as parquet. Server and peer run in
// this process and take turns, so that other load on the machine slows both alike.

import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { storeServices } from '../server/catalogue/store-services.ts'
import { readServeCall, type ServeConfig } from '../server/service/config.ts'
import { startServer } from '../server/service/server.ts'
import { openRelationalStore } from '../server/storage/relational-store.ts'
import { RECORD_FIELDS } from '../shared/record-schema.ts'
import type { BenchLake } from './bench-lake.ts'
import {
  CANDLE_MONTH,
  CANDLE_SERIES,
  CANDLE_STRIKES,
  candleDate,
  candleMarket,
  writeCandleMonth,
} from './candle-file.ts'
import { readStream } from './http-stream.ts'
import { alternate, median } from './measure.ts'
import { OBSERVATION_YEAR, writeObservationYear } from './observation-file.ts'
import { RecordPeer } from './record-peer.ts'
import type { BenchReport, BenchSize } from './report.ts'

interface RecordBenchSize {
  readonly days: number
  readonly rounds: number
  readonly exportRows: number
  /** Of each of four stations. */
  readonly reports: number
}

const SIZES: Readonly<Record<BenchSize, RecordBenchSize>> = {
  smoke: { days: 2, rounds: 2, exportRows: 5_000, reports: 2_000 },
  full: { days: 30, rounds: 41, exportRows: 500_000, reports: 87_500 },
}

function benchConfig(lake: string): ServeConfig {
  const call = readServeCall(['--lake', lake, '--port', '0', '--log-level', 'silent'], {})
  if (call === 'help') throw new Error('the server was asked for help')
  return call.config
}

/** Neither response is compressed, because the client does not request it. */
async function readBody(address: string): Promise<{ ms: number; sha256: string }> {
  const { hostname, port, pathname, search } = new URL(address)
  const pieces: Buffer[] = []
  const { status, totalMs } = await readStream({
    address: { host: hostname, port: Number(port) },
    target: pathname + search,
    onBody: (bytes) => pieces.push(Buffer.from(bytes)),
  })
  const body = Buffer.concat(pieces)
  if (status !== 200) throw new Error(`${address}: ${status} ${body.toString()}`)
  return { ms: totalMs, sha256: createHash('sha256').update(body).digest('hex') }
}

async function elapsedMs(action: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await action()
  return performance.now() - startMs
}

/** `DATABASE_URL` names the store that is queried besides the lake; without it, an embedded one is. */
export async function runRecords({ lake }: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { days, rounds, exportRows, reports } = SIZES[size]
  const root = await mkdtemp(join(lake, 'records-'))
  const file = await writeCandleMonth(root, days)
  const observations = await writeObservationYear(root, reports)
  const databaseUrl = process.env['DATABASE_URL'] ?? null
  const store = await openRelationalStore({ databaseUrl, dataDirectory: join(root, 'data') })
  await store.migrate()
  const server = await startServer(benchConfig(root), {
    logger: pino({ level: 'silent' }),
    // As in `bookcast serve`: without these options no response is cached.
    store: storeServices(store.postgres),
    storeAddress: store.postgres.address,
  })
  const peer = await RecordPeer.start(file)
  try {
    const candles = `http://127.0.0.1:${server.port}/api/v1/candles`
    const market = (day: number, strike: number): string =>
      `market=${candleMarket(day, strike)}&from=${candleDate(day)}`
    const to = `&to=${candleDate(2)}T00:00:00Z`
    const same = { ours: `${candles}?${market(1, 3)}${to}`, peer: `${peer.url}/candles?${market(1, 3)}${to}` }
    const [ours = [], theirs = []] = await alternate(rounds, 5, [
      () => readBody(same.ours),
      () => readBody(same.peer),
    ])
    // Another limit makes it another request, whose response is made from cached rows.
    let limit = 10_000
    const [made = []] = await alternate(rounds, 0, [() => readBody(`${same.ours}&limit=${limit--}`)])
    let next = 0
    const another = (): Promise<{ ms: number }> => {
      const [day, strike] = [1 + (Math.floor(next / CANDLE_STRIKES) % days), next++ % CANDLE_STRIKES]
      const end = new Date(Date.parse(`${CANDLE_MONTH}-01T00:00:00Z`) + day * 86_400_000).toISOString()
      return readBody(`${candles}?${market(day, strike)}&to=${end}`)
    }
    const [first = []] = await alternate(rounds, 0, [another])
    const exported = `${candles}?series=${CANDLE_SERIES}&from=${CANDLE_MONTH}-01&to=2026-08-05&limit=${exportRows}&format=parquet`
    const reported =
      `http://127.0.0.1:${server.port}/api/v1/observations?from=${OBSERVATION_YEAR}-01-01` +
      `&to=${Number(OBSERVATION_YEAR) + 1}-01-01&limit=${observations}&format=parquet`
    const columns = RECORD_FIELDS.observations.map(({ name }) => name)
    const pattern = join(root, 'observations', '*', '*', '*.parquet')
    const [exports = [], copies = [], reportExports = [], reportCopies = []] = await alternate(
      Math.ceil(rounds / 6),
      1,
      [
        async () => (await readBody(exported)).ms,
        async () => elapsedMs(() => peer.copy(exportRows, join(root, 'copy.parquet'))),
        async () => (await readBody(reported)).ms,
        async () => elapsedMs(() => peer.copyObservations(pattern, columns, join(root, 'copy.parquet'))),
      ],
    )
    const [ourMs, peerMs, madeMs, firstMs] = [ours, theirs, made, first].map((bodies) =>
      median(bodies.map(({ ms }) => ms)),
    ) as [number, number, number, number]
    const [exportMs, copyMs] = [median(exports), median(copies)]
    const [reportMs, reportCopyMs] = [median(reportExports), median(reportCopies)]
    return {
      benchmark: 'records',
      size,
      figures: [
        { name: 'a day of one market as json', value: ourMs, unit: 'ms' },
        { name: 'the same by fastify and DuckDB', value: peerMs, unit: 'ms' },
        { name: 'bookcast is faster by', value: peerMs / ourMs, unit: '×', atLeast: 6 },
        { name: 'a day of which the rows are remembered, not the answer', value: madeMs, unit: 'ms' },
        { name: 'a market that was not asked for before', value: firstMs, unit: 'ms', atMost: 5 },
        { name: `${exportRows} candles as parquet`, value: exportMs, unit: 'ms' },
        { name: 'COPY of the same rows', value: copyMs, unit: 'ms' },
        { name: 'speed of COPY that is reached', value: copyMs / exportMs, unit: '×', atLeast: 1 },
        { name: `${observations} observations as parquet`, value: reportMs, unit: 'ms' },
        { name: 'COPY of the same reports', value: reportCopyMs, unit: 'ms' },
        { name: 'speed of that COPY', value: reportCopyMs / reportMs, unit: '×', atLeast: 1 },
      ],
      hashes: { bookcast: ours.at(-1)?.sha256 ?? '', 'fastify and DuckDB': theirs.at(-1)?.sha256 ?? '' },
      notes: [
        `The store is ${databaseUrl === null ? 'an embedded PostgreSQL' : 'the PostgreSQL of DATABASE_URL'}, which has no candles.`,
        'The same day again is given from memory after a look at the files it was made of. A market that was not asked for before is seldom the first of its event, with whose rows those of the others come.',
      ],
    }
  } finally {
    await peer.close()
    await server.close()
    await store.close()
    await rm(root, { recursive: true, force: true })
  }
}
