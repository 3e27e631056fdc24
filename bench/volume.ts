// Whether the cost of a response depends on its size and not on the history: the same requests to servers over histories of
// different lengths, in turns. The latest days, and so the responses, are the same in all of them.

import { createHash, type Hash } from 'node:crypto'
import { MS_PER_DAY, utcDateOf } from '../shared/utc-date.ts'
import type { BenchLake } from './bench-lake.ts'
import { alternate, median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import {
  lobSeries,
  startVolumeWorld,
  volumeEvent,
  VOLUME_END_MS,
  VOLUME_LOB_DATE,
  VOLUME_STRIKES,
  type VolumeSize,
  type VolumeWorld,
  volumeSeries,
} from './volume-world.ts'

const COMMON = { series: 40, candlesPerMarket: 100 }
/** From the shortest history to the longest, which is ten times as long. */
const SIZES: Readonly<
  Record<BenchSize, { readonly worlds: readonly VolumeSize[]; readonly rounds: number }>
> = {
  smoke: {
    worlds: [
      { days: 4, series: 2, candlesPerMarket: 5, lobFiles: 4 },
      { days: 40, series: 2, candlesPerMarket: 5, lobFiles: 40 },
    ],
    rounds: 1,
  },
  full: {
    worlds: [
      { ...COMMON, days: 42, lobFiles: 5_000 },
      { ...COMMON, days: 126, lobFiles: 15_000 },
      { ...COMMON, days: 420, lobFiles: 50_000 },
    ],
    rounds: 41,
  },
}
/** Rounds in which threads fill their caches. */
const WARM_UPS = 8
const RATIO_MAX = 1.3

interface Question {
  readonly name: string
  /** Another target in every round, so that no response comes from the cache. */
  readonly target: (round: number) => string
  /** Milliseconds with the longest history and a store on PostgreSQL. */
  readonly atMost?: number
}

/** @param days the days that may be requested */
function questions(days: number, series: number): Question[] {
  const dayOf = (round: number): number => 1 + (round % (days - 2))
  const dateOf = (day: number): string => utcDateOf(VOLUME_END_MS - (day + 1) * MS_PER_DAY)
  const threeDays = (kind: 'L' | 'S', round: number): string => {
    const [day, number] = [dayOf(round), (round * 7) % series]
    const market = `${volumeEvent(volumeSeries(kind, number), day)}-B${1 + (round % VOLUME_STRIKES)}`
    return `/api/v1/candles?market=${market}&from=${dateOf(day + 1)}&to=${dateOf(day - 1)}`
  }
  const hour = (round: number): string => {
    const [date, at] = [dateOf(dayOf(round)), String(1 + (round % 22)).padStart(2, '0')]
    return `from=${date}T${at}:00:00Z&to=${date}T${at}:59:00Z&limit=1000`
  }
  return [
    { name: 'an hour of all candles, filled', target: (round) => `/api/v1/candles?${hour(round)}` },
    {
      name: 'an hour of all candles as traded',
      target: (round) => `/api/v1/candles?${hour(round)}&fill=false`,
    },
    {
      name: "a market's three days from the lake",
      target: (round) => threeDays('L', round),
      atMost: 10,
    },
    {
      name: "a market's three days from the store",
      target: (round) => threeDays('S', round),
      atMost: 6,
    },
    {
      name: 'an unknown event of the store',
      target: (round) =>
        `/api/v1/candles?event=${volumeSeries('S', round % series)}-NONE${round}&from=${dateOf(dayOf(round))}&to=${dateOf(0)}`,
    },
    {
      name: 'an hour of a book',
      target: (round) =>
        `/api/v1/lob?series=${lobSeries(0)}&date=${VOLUME_LOB_DATE}&hour=${round % 24}&interval=60&levels=${1 + (round % 10)}`,
    },
    {
      name: 'a page of markets',
      target: (round) => `/api/v1/markets?series=${volumeSeries('L', round % series)}&limit=${2 + round}`,
    },
  ]
}

interface AskedWorld extends VolumeWorld {
  /** Of all its responses. */
  readonly hash: Hash
}

/** Returns the response time. */
async function ask({ url, hash }: AskedWorld, target: string): Promise<number> {
  const startMs = performance.now()
  const response = await fetch(url + target, { headers: { 'accept-encoding': 'identity' } })
  const body = Buffer.from(await response.arrayBuffer()).toString()
  const ms = performance.now() - startMs
  if (response.status !== (target.includes('-NONE') ? 404 : 200))
    throw new Error(`${target}: ${response.status} ${body}`)
  hash.update(body.replace(/"request_id":"[^"]*"/, ''))
  return ms
}

async function measure(
  worlds: readonly AskedWorld[],
  { name, target, atMost }: Question,
  rounds: number,
): Promise<Figure[]> {
  const results = await alternate(
    rounds,
    WARM_UPS,
    worlds.map((world) => {
      let round = 0
      return () => ask(world, target(round++))
    }),
  )
  const medians = results.map(median)
  const longest = medians.at(-1)!
  const figures = worlds.map((world, index): Figure => {
    const isGoal = atMost !== undefined && index === worlds.length - 1
    return {
      name: `${name}: ${world.name}`,
      value: medians[index]!,
      unit: 'ms',
      ...(isGoal ? { atMost } : {}),
    }
  })
  const ratio = { name: `${name}: longest to shortest history`, value: longest / medians[0]!, unit: '×' }
  return [...figures, { ...ratio, atMost: RATIO_MAX }]
}

/** Each history gets a database on the server of `DATABASE_URL`; without it the stores are embedded. */
export async function runVolume({ lake }: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { worlds: sizes, rounds } = SIZES[size]
  const worlds: AskedWorld[] = []
  try {
    for (const each of sizes) {
      const world = await startVolumeWorld(lake, `${each.days} days`, each)
      worlds.push({ ...world, hash: createHash('sha256') })
    }
    const [shortest] = sizes
    const figures: Figure[] = []
    for (const question of questions(shortest!.days, shortest!.series))
      figures.push(...(await measure(worlds, question, rounds)))
    return {
      benchmark: 'volume',
      size,
      figures,
      hashes: Object.fromEntries(
        worlds.map(({ name, hash }) => [`all answers, ${name}`, hash.digest('hex')]),
      ),
      notes: sizes.map(({ days, series, candlesPerMarket, lobFiles }, index) => {
        const markets = 2 * series * days * VOLUME_STRIKES
        const store = process.env['DATABASE_URL'] === undefined ? 'an embedded store' : 'PostgreSQL'
        const files = `${worlds[index]!.candleFiles} candle and ${lobFiles} order-book files`
        return `${days} days: ${markets * candlesPerMarket} candles of ${markets} markets, half of them in the lake and half in ${store}; ${files}.`
      }),
    }
  } finally {
    for (const world of worlds) await world.close()
  }
}
