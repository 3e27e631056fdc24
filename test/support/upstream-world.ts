// All upstreams in one local server, each below its own path, with responses that depend on the request. A test can inject faults
// and read which requests were made.

import type { TestContext } from 'node:test'
import type { IngestConfig } from '../../server/ingest/ingest-config.ts'
import { type IngestSource, type SourceContext, type SourceName } from '../../server/ingest/source.ts'
import { createSources } from '../../server/ingest/registry.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { IEM_COLUMNS } from '../../server/ingest/iem/parse.ts'
import type { Clock } from '../../server/tasks/clock.ts'
import { productText, wrapped } from './climate-text.ts'
import { exchangeAnswer } from './exchange-world.ts'
import { ghcnhTable } from './ghcnh-table.ts'
import {
  type Answer,
  type AskedRequest,
  type LocalUpstream,
  send,
  startRoutedUpstream,
  timeoutMsFor,
} from './local-upstream.ts'
import { ManualClock } from './manual-clock.ts'
import { knownStation } from './stations.ts'

export const WORLD_NOW_MS = Date.parse('2026-08-30T12:00:00Z')
/** The stations of the simulated upstreams. */
export const WORLD_STATIONS = [knownStation('MIA'), knownStation('NYC')]
export const NWS_PRODUCT = '0b5a2a52-6a37-4c1e-9c1f-111111111111'

interface WorldEntry {
  readonly icaoId: string
  readonly [field: string]: unknown
}

export interface UpstreamWorld extends LocalUpstream {
  readonly config: IngestConfig
  /** Called before every response; undefined lets the upstream answer. */
  fault: (request: AskedRequest) => Answer | undefined
  /** Reports of the live feed; a test replaces them to publish one. */
  entries: readonly WorldEntry[]
  /** Timeout of its sources. */
  timeoutMs: number
}

export async function startWorld(t: TestContext): Promise<UpstreamWorld> {
  const state: Pick<UpstreamWorld, 'fault' | 'entries' | 'timeoutMs'> = {
    fault: () => undefined,
    entries: [metarEntry('KNYC', '2026-08-30T11:51:00Z'), metarEntry('KMIA', '2026-08-30T11:53:00Z')],
    timeoutMs: timeoutMsFor([]),
  }
  const upstream = await startRoutedUpstream(t, (request) => {
    return state.fault(request) ?? answer(request, state.entries) ?? send(404, `no route ${request.url}`)
  })
  return Object.assign(state, upstream, { config: worldConfig(upstream.baseUrl) })
}

export function worldConfig(baseUrl: string): IngestConfig {
  return {
    userAgent: 'bookcast-test (tests@example.org)',
    kalshiUrl: `${baseUrl}/kalshi`,
    category: 'Climate and Weather',
    kalshiRequestsPerSecond: 100,
    polymarketDataUrl: `${baseUrl}/polymarket`,
    aviationWeatherUrl: `${baseUrl}/awc`,
    iemUrl: `${baseUrl}/iem`,
    nceiUrl: `${baseUrl}/ncei`,
    nwsUrl: `${baseUrl}/nws`,
    acisUrl: `${baseUrl}/acis`,
    catalogueIntervalMs: 300_000,
    candlesIntervalMs: 60_000,
    aviationWeatherIntervalMs: 5_000,
    climateIntervalMs: 120_000,
    archivesIntervalMs: 3_600_000,
  }
}

/** One source of the world; closed when the test ends. */
export function worldSource(t: TestContext, world: UpstreamWorld, name: SourceName): IngestSource {
  const [source] = createSources(world.config, {
    names: [name],
    stations: WORLD_STATIONS,
    http: { clock: new ManualClock(WORLD_NOW_MS), random: () => 0.5, timeoutMs: world.timeoutMs },
  })
  if (source === undefined) throw new Error(`there is no source ${name}`)
  t.after(() => source.close())
  return source
}

/** The world's time stands still. */
export function worldContext(postgres: Postgres, signal = new AbortController().signal): SourceContext {
  const clock: Clock = { nowMs: () => WORLD_NOW_MS, sleep: async () => {} }
  return { postgres, clock, signal }
}

export function metarEntry(icao: string, time: string, temperature = 'T02560172'): WorldEntry {
  const ms = Date.parse(time)
  const stamp = `${time.slice(8, 10)}${time.slice(11, 13)}${time.slice(14, 16)}Z`
  return {
    icaoId: icao,
    receiptTime: new Date(ms + 120_000).toISOString(),
    obsTime: ms / 1000,
    reportTime: time,
    metarType: 'METAR',
    rawOb: `METAR ${icao} ${stamp} 21007KT 10SM FEW110 26/17 A2994 RMK AO2 SLP137 ${temperature}`,
  }
}

function answer(request: AskedRequest, entries: readonly WorldEntry[]): Answer | undefined {
  const url = new URL(request.url, 'http://local')
  const [, upstream = '', ...rest] = url.pathname.split('/')
  const path = `/${rest.join('/')}`
  if (upstream === 'kalshi') return exchangeAnswer(request, '/kalshi')
  if (upstream === 'awc' && path === '/api/data/metar') {
    return send(200, JSON.stringify(entriesOf(url.searchParams, entries)))
  }
  if (upstream === 'iem' && path === '/cgi-bin/request/asos.py') return send(200, asosTable(url.searchParams))
  if (upstream === 'iem' && path === '/cgi-bin/afos/retrieve.py') return send(200, afosText(url.searchParams))
  if (upstream === 'ncei') return send(200, nceiTable(path), { etag: '"1"' })
  if (upstream === 'nws') return nwsAnswer(path)
  if (upstream === 'acis') return send(200, acisAnswer(request.body))
  return undefined
}

/** Reports of the requested stations, whatever their age. */
function entriesOf(query: URLSearchParams, entries: readonly WorldEntry[]): readonly WorldEntry[] {
  const ids = (query.get('ids') ?? '').split(',')
  return entries.filter(({ icaoId }) => ids.includes(icaoId))
}

/** A routine report at 11:51 of every tenth day up to the world's time, and no special ones. */
function asosTable(query: URLSearchParams): string {
  const fromMs = Date.parse(query.get('sts') ?? '')
  // Tests that use the current time have only their own reports.
  const toMs = Math.min(Date.parse(query.get('ets') ?? ''), WORLD_NOW_MS)
  const station = query.get('station') ?? ''
  const lines: string[] = [IEM_COLUMNS.join(',')]
  for (let ms = Date.parse('2026-01-01T11:51:00Z'); ms < toMs; ms += 10 * 86_400_000) {
    if (ms < fromMs || query.get('report_type') !== '3') continue
    const iso = new Date(ms).toISOString()
    const stamp = `${iso.slice(8, 10)}${iso.slice(11, 13)}${iso.slice(14, 16)}Z`
    const metar = `K${station} ${stamp} AUTO 21007KT 10SM FEW039 26/17 A2994 RMK AO2 SLP137 T02560172`
    const cells: Record<string, string> = { station, valid: iso.slice(0, 16).replace('T', ' '), metar }
    lines.push(IEM_COLUMNS.map((column) => cells[column] ?? 'M').join(','))
  }
  return `${lines.join('\n')}\n`
}

function nceiTable(path: string): string {
  const station = /GHCNh_(\w+)_\d{4}\.psv$/.exec(path)?.[1] ?? ''
  return ghcnhTable([{ cells: { temperature: '7.8|5' }, station }])
}

const MIAMI_29 = productText({ summaries: [{ name: 'MIAMI', date: 'AUGUST 29 2026' }] })
const MIAMI_28 = productText({
  header: 'CDUS42 KMFL 290824',
  issued: '424 AM EDT SAT AUG 29 2026',
  summaries: [{ name: 'MIAMI', date: 'AUGUST 28 2026' }],
})

function afosText(query: URLSearchParams): string {
  const pil = query.get('pil') ?? ''
  const products = [
    { text: MIAMI_28, issuedMs: Date.parse('2026-08-29T08:24Z') },
    { text: MIAMI_29, issuedMs: Date.parse('2026-08-30T08:24Z') },
  ].filter(
    ({ issuedMs }) =>
      issuedMs >= Date.parse(query.get('sdate') ?? '') && issuedMs < Date.parse(query.get('edate') ?? ''),
  )
  if (pil !== 'CLIMIA' || products.length === 0) return `ERROR: Could not Find: ${pil}`
  return wrapped(...products.map(({ text }) => text))
}

function nwsAnswer(path: string): Answer | undefined {
  if (path === `/products/${NWS_PRODUCT}`) {
    return send(200, JSON.stringify({ id: NWS_PRODUCT, productText: MIAMI_29 }))
  }
  if (!path.startsWith('/products/types/CLI/locations/')) return undefined
  const product = { id: NWS_PRODUCT, issuanceTime: '2026-08-30T08:24:00+00:00', productCode: 'CLI' }
  return send(200, JSON.stringify({ '@graph': path.endsWith('/MIA') ? [product] : [] }), { etag: '"a"' })
}

function acisAnswer(body: string): string {
  const { sid, sdate, edate } = JSON.parse(body) as { sid: string; sdate: string; edate: string }
  const data: unknown[] = []
  for (let ms = Date.parse(sdate); ms <= Date.parse(edate); ms += 86_400_000) {
    data.push([new Date(ms).toISOString().slice(0, 10), '88', '71'])
  }
  return JSON.stringify({ meta: { sids: [`${sid} 5`] }, data })
}
