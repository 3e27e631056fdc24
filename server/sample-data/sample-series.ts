// The four series of the committed sample and the special cases in it. The sample's metadata.json and its tests use this list.

import { PRICE_UNITS_PER_CENT, PRICE_UNITS_PER_DOLLAR, QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MS_PER_HOUR, addDays, utcDatesBetween, MONTH_NAMES } from '../../shared/utc-date.ts'
import type { Outage, SimulatedMarket } from './recorded-stream.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimulatedBook, deciCentTick, linearCentTick, tailTick } from './simulated-book.ts'
import { type SampleStation, sampleStation } from './station-day.ts'
import type { Bucket, TemperatureEvent } from './temperature-events.ts'
import { temperatureEvent } from './temperature-events.ts'

/** The seed of the committed sample. */
export const SAMPLE_SEED_DEFAULT = 20
export const SAMPLE_FIRST_DATE = '2026-07-01'
export const SAMPLE_LAST_DATE = '2026-07-03'

export interface SampleSeries {
  readonly source: LobSource
  readonly ticker: string
  readonly station: SampleStation
  /** Level changes of the busiest market in the busiest hour. */
  readonly changesPerHour: number
}

const NEW_YORK = sampleStation('NYC', 84)

export const SAMPLE_SERIES: readonly SampleSeries[] = [
  { source: 'kalshi', ticker: 'KXHIGHNY', station: NEW_YORK, changesPerHour: 230 },
  { source: 'kalshi', ticker: 'KXHIGHCHI', station: sampleStation('MDW', 85), changesPerHour: 180 },
  { source: 'kalshi', ticker: 'KXHIGHDEN', station: sampleStation('DEN', 91), changesPerHour: 140 },
  { source: 'polymarket', ticker: 'highest-temperature-in-nyc', station: NEW_YORK, changesPerHour: 95 },
]

/** The feed of this event is interrupted once, for all six markets: they share a subscription. */
export const SAMPLE_OUTAGE = {
  series: 'KXHIGHCHI',
  day: '2026-07-02',
  fromMs: Date.UTC(2026, 6, 2, 18, 12, 7, 304),
  toMs: Date.UTC(2026, 6, 2, 18, 13, 42, 911),
} as const

/** The upper tail of this event is quoted in tenths of a cent. */
export const SAMPLE_DECI_CENT = { series: 'KXHIGHDEN', day: '2026-07-03' } as const

/** The meaning of a market id, for Polymarket's ids, which do not show it. */
export interface SampleMarket {
  readonly id: string
  readonly event: string
  readonly bucket: string
  readonly outcome: 'Yes' | 'No'
}

/** A simulated market and the event that settles it. */
export interface TemperatureMarket extends SimulatedMarket {
  readonly event: TemperatureEvent
  readonly bucket: Bucket
}

/** The markets of one series that are open on some date of the sample. */
export function sampleMarkets(series: SampleSeries, seed: number) {
  // A local day's event opens on the UTC date before it, so the last date also has the next day's event.
  const days = utcDatesBetween(SAMPLE_FIRST_DATE, addDays(SAMPLE_LAST_DATE, 1))
  const events = days.map((day) => {
    const event = temperatureEvent(series.station, day, seed)
    return event.buckets.map((bucket) => sampleMarket(series, event, bucket, seed))
  })
  return {
    markets: events.flat().map((market) => market.market),
    described: events.flat().flatMap((market) => market.described),
  }
}

function sampleMarket(series: SampleSeries, event: TemperatureEvent, bucket: Bucket, seed: number) {
  const isKalshi = series.source === 'kalshi'
  const label = bucketLabel(bucket)
  const eventName = isKalshi
    ? kalshiEvent(series.ticker, event.day)
    : polymarketEvent(series.ticker, event.day)
  const name = `${eventName}/${label}`
  const identity = isKalshi
    ? { id: `${eventName}-${strikeOf(bucket)}`, mirrorId: null }
    : polymarketIds(new SeededRandom(seed, `${name}/ids`))
  const random = new SeededRandom(seed, `${name}/orders`)
  const isDeciCent =
    series.ticker === SAMPLE_DECI_CENT.series && event.day === SAMPLE_DECI_CENT.day && bucket.highF === null
  const book = new SimulatedBook({
    random,
    tickAt: isKalshi ? (isDeciCent ? deciCentTick : linearCentTick) : tailTick,
    halfSpread: PRICE_UNITS_PER_CENT * (0.4 + 1.2 * random.unit()),
    depth: 10 + random.below(14),
    orderQty: isKalshi ? kalshiOrderQty : polymarketOrderQty,
  })
  const market: TemperatureMarket = {
    ...identity,
    event,
    bucket,
    subscription: isKalshi ? eventName : series.ticker,
    openMs: event.openMs,
    closeMs: event.closeMs,
    outages: outagesOf(series, event),
    book,
    random,
    fairAt: (ms) => fairPrice(event.probability(bucket, ms)),
    changesInHour: (hourMs) => changesInHour(series, event, bucket, hourMs, random),
  }
  const about = { event: eventName, bucket: label }
  const described: SampleMarket[] = [{ id: market.id, ...about, outcome: 'Yes' }]
  if (market.mirrorId !== null) described.push({ id: market.mirrorId, ...about, outcome: 'No' })
  return { market, described }
}

function outagesOf(series: SampleSeries, event: TemperatureEvent): Outage[] {
  const isOut = series.ticker === SAMPLE_OUTAGE.series && event.day === SAMPLE_OUTAGE.day
  return isOut ? [{ fromMs: SAMPLE_OUTAGE.fromMs, toMs: SAMPLE_OUTAGE.toMs }] : []
}

/** A market is worth from a third of a cent to a dollar minus that, until it is settled. */
function fairPrice(probability: number): number {
  return PRICE_UNITS_PER_DOLLAR * Math.min(Math.max(probability, 0.0035), 0.9965)
}

/** Uncertain buckets trade most; a new market gets quotes quickly. */
function changesInHour(
  series: SampleSeries,
  event: TemperatureEvent,
  bucket: Bucket,
  hourMs: number,
  random: SeededRandom,
): number {
  if (hourMs + MS_PER_HOUR <= event.openMs || hourMs >= event.closeMs) return 0
  const probability = event.probability(bucket, hourMs + MS_PER_HOUR / 2)
  const interest = 0.12 + 3.5 * probability * (1 - probability)
  const opening = hourMs <= event.openMs ? 60 : 0
  return opening + Math.floor(series.changesPerHour * interest * event.activity(hourMs) + random.unit())
}

// Order sizes as people type them.
const ROUND_CONTRACTS = [1, 2, 5, 10, 10, 20, 25, 50, 100, 100, 200, 250, 300, 500, 1000] as const

function kalshiOrderQty(random: SeededRandom): number {
  const contracts = random.isWithin(0.7) ? random.pick(ROUND_CONTRACTS) : 1 + random.below(800)
  const hundredths = random.isWithin(0.08) ? random.below(100) : 0
  return contracts * QTY_UNITS_PER_CONTRACT + hundredths * (QTY_UNITS_PER_CONTRACT / 100)
}

function polymarketOrderQty(random: SeededRandom): number {
  const shares = random.isWithin(0.6) ? random.pick(ROUND_CONTRACTS) : 5 + random.below(1500)
  const hundredths = random.isWithin(0.35) ? random.below(100) : 0
  return shares * QTY_UNITS_PER_CONTRACT + hundredths * (QTY_UNITS_PER_CONTRACT / 100)
}

/** `KXHIGHNY-26JUL01` */
function kalshiEvent(series: string, day: string): string {
  const month = (MONTH_NAMES[Number(day.slice(5, 7)) - 1] ?? '').slice(0, 3).toUpperCase()
  return `${series}-${day.slice(2, 4)}${month}${day.slice(8, 10)}`
}

/** `highest-temperature-in-nyc-on-july-1-2026` */
function polymarketEvent(series: string, day: string): string {
  return `${series}-on-${MONTH_NAMES[Number(day.slice(5, 7)) - 1]}-${Number(day.slice(8, 10))}-${day.slice(0, 4)}`
}

/** `T79` for both tails (the number is the highest or lowest degree outside), `B80.5` for 80 to 81. */
function strikeOf(bucket: Bucket): string {
  if (bucket.lowF === null) return `T${(bucket.highF ?? 0) + 1}`
  return bucket.highF === null ? `T${bucket.lowF - 1}` : `B${bucket.lowF}.5`
}

function bucketLabel(bucket: Bucket): string {
  if (bucket.lowF === null) return `${bucket.highF}°F or below`
  return bucket.highF === null ? `${bucket.lowF}°F or higher` : `${bucket.lowF}-${bucket.highF}°F`
}

/** A condition of 32 bytes and its two tokens, decimal numbers of 77 digits. */
function polymarketIds(random: SeededRandom): { id: string; mirrorId: string } {
  const condition = Array.from({ length: 8 }, () => random.nextUint32().toString(16).padStart(8, '0')).join(
    '',
  )
  const token = () => {
    const digits = Array.from({ length: 76 }, () => String(random.below(10))).join('')
    return `${1 + random.below(9)}${digits}`
  }
  return { id: `0x${condition}:${token()}`, mirrorId: `0x${condition}:${token()}` }
}
