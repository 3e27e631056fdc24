// One series by its ticker: requests per second of the real server, of a handler that returns a constant of the same size (the HTTP
// library's maximum), and of fastify with pg, which queries the same database each time. The three take turns in each round, so
// that other load on the machine slows all of them alike.

import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openRelationalStore } from '../server/storage/relational-store.ts'
import { BENCH_SERIES_TICKER, type Load, measureRate, readAnswer } from './catalogue-load.ts'
import { readProcessCpuMs } from './process-status.ts'
import type { BenchReport, BenchSize } from './report.ts'
import { type ChildServer, startCatalogueServer } from './server-process.ts'

const LOADS: Readonly<Record<BenchSize, Load & { readonly rounds: number }>> = {
  // Like most clients: one request at a time on each connection.
  full: { connections: 32, depth: 1, durationMs: 1_500, rounds: 7 },
  smoke: { connections: 2, depth: 2, durationMs: 50, rounds: 1 },
}

const PUT_SERIES = `
  INSERT INTO series (ticker, measure_type, title, station_code, category, frequency, tags, active, last_seen_at)
  VALUES ('${BENCH_SERIES_TICKER}', 'high', 'Highest temperature in NYC today?', 'NYC', 'Climate and Weather', 'daily',
    '["Daily temperature"]', true, '2026-07-03T12:00:00.25Z')
  ON CONFLICT (ticker) DO NOTHING`

interface Measured {
  readonly name: string
  readonly server: ChildServer
  readonly answerBytes: number
  readonly rates: number[]
  cpuMs: number
  answers: number
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0
}

async function measureRounds(measured: readonly Measured[], size: BenchSize): Promise<void> {
  const load = LOADS[size]
  for (let round = 0; round <= load.rounds; round += 1) {
    for (const each of measured) {
      const cpuBeforeMs = (await readProcessCpuMs(each.server.pid)) ?? 0
      const rate = await measureRate(each.server.address, each.answerBytes, load)
      // The first round warms up.
      if (round === 0) continue
      each.rates.push(rate)
      each.cpuMs += ((await readProcessCpuMs(each.server.pid)) ?? 0) - cpuBeforeMs
      each.answers += (rate * load.durationMs) / 1000
    }
  }
}

/** Milliseconds; NaN if processor time cannot be read. */
function cpuPerAnswer(measured: Measured | undefined): number {
  return measured === undefined ? Number.NaN : measured.cpuMs / Math.max(measured.answers, 1)
}

function report(size: BenchSize, measured: readonly Measured[], body: string, notes: string[]): BenchReport {
  const [bare, bookcast, fastify] = measured.map((each) => median(each.rates)) as [number, number, number]
  return {
    benchmark: 'catalogue',
    size,
    figures: [
      ...measured.map((each) => ({
        name: each.name,
        value: median(each.rates) / 1000,
        unit: 'k requests/s',
      })),
      ...measured.map((each) => ({
        name: `${each.name}, processor time per request`,
        value: 1000 * cpuPerAnswer(each),
        unit: 'µs',
      })),
      { name: 'bookcast of the bare handler', value: (100 * bookcast) / bare, unit: '%', atLeast: 60 },
      {
        name: 'the same by processor time, whatever limits the rate',
        value: (100 * cpuPerAnswer(measured[0])) / cpuPerAnswer(measured[1]),
        unit: '%',
        atLeast: 60,
      },
      { name: 'bookcast is faster than fastify + pg by', value: bookcast / fastify, unit: '×', atLeast: 5 },
    ],
    hashes: { body: createHash('sha256').update(body).digest('hex') },
    notes,
  }
}

/** Both use the server of `DATABASE_URL`; without it they share an embedded store, which slows fastify down. */
export async function runCatalogue(size: BenchSize): Promise<BenchReport> {
  const directory = await mkdtemp(join(tmpdir(), 'bookcast-bench-'))
  const databaseUrl = process.env['DATABASE_URL'] ?? null
  const store = await openRelationalStore({ databaseUrl, dataDirectory: directory })
  const servers: ChildServer[] = []
  try {
    await store.migrate()
    await store.postgres.transaction(async (transaction) => {
      await transaction.run({ text: PUT_SERIES, parameters: [] })
      transaction.markChanged('series')
    })
    const address = JSON.stringify(store.postgres.address)
    const bookcast = await startCatalogueServer('bookcast', address)
    servers.push(bookcast)
    const { body } = await readAnswer(bookcast.address)
    servers.push(await startCatalogueServer('fastify', address))
    const fastifyBody = (await readAnswer(servers[1]!.address)).body
    if (JSON.stringify(JSON.parse(fastifyBody)) !== JSON.stringify(JSON.parse(body)))
      throw new Error(`the answers differ: ${body} and ${fastifyBody}`)
    servers.push(await startCatalogueServer('bare', String(Buffer.byteLength(body))))
    const names = ['bookcast', 'fastify + pg', 'bare uWebSockets handler']
    const measured = await Promise.all(
      servers.map(async (server, index): Promise<Measured> => {
        const { bytes } = await readAnswer(server.address)
        return { name: names[index]!, server, answerBytes: bytes, rates: [], cpuMs: 0, answers: 0 }
      }),
    )
    const [ours, peer, bare] = measured as [Measured, Measured, Measured]
    await measureRounds([bare, ours, peer], size)
    const database = databaseUrl === null ? 'an embedded PostgreSQL' : 'the PostgreSQL of DATABASE_URL'
    const { connections, depth } = LOADS[size]
    return report(size, [bare, ours, peer], body, [
      `${connections} connections with ${depth} requests each under way; fastify asks ${database}`,
    ])
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
    await store.close()
    await rm(directory, { recursive: true, force: true })
  }
}
