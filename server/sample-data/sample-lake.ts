// Writes the sample: a small lake and metadata that describes it. The same seed gives the same bytes, so the committed sample can
// be checked against a fresh one.

import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { lobSources } from '../../shared/lob-sources.ts'
import { LOB_SCHEMA } from '../../shared/lob-v1.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { TRADES_SCHEMA } from '../../shared/trades-v1.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { LobRecordingWriter } from '../lake/lob-recording-writer.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import { replaceFile } from '../lake/temporary-file.ts'
import type { SimulatedTrade } from './recorded-stream.ts'
import { recordSample, SAMPLE_FROM_MS, SAMPLE_TO_MS } from './sample-recording.ts'
import type { SampleMarket, SampleSeries } from './sample-series.ts'
import { SAMPLE_DECI_CENT, SAMPLE_OUTAGE, SAMPLE_SERIES, sampleMarkets } from './sample-series.ts'
import { SAMPLE_TRADES_SERIES, writeSampleTrades } from './sample-trades.ts'
import type { WrittenTrades } from './sample-trades.ts'

const GENERATOR = 'bookcast sample-data'

/** One lake file of the sample; `path` is relative to the sample's directory, with forward slashes. */
interface SampleFile {
  readonly path: string
  readonly schema: string
  readonly rows: number
  readonly markets: number
  readonly sizeBytes: number
  readonly sha256: string
}

/** The content of `metadata.json`. */
export interface SampleMetadata {
  readonly description: string
  readonly generated: true
  readonly generator: string
  readonly command: string
  readonly seed: number
  readonly cases: readonly string[]
  readonly files: readonly SampleFile[]
  /** Polymarket's markets, because their ids do not show what they are. */
  readonly polymarketMarkets: readonly SampleMarket[]
}

export interface SampleLakeOptions {
  /** The lake goes to `<directory>/lake`, the metadata beside it. */
  readonly directory: string
  readonly seed: number
  readonly signal?: AbortSignal
}

/**
 * Writes the sample and returns its metadata. Files of an earlier sample are replaced.
 * @throws {Error} if the lake has other data for the sample's dates and there is no metadata of a sample
 */
export async function writeSampleLake(options: SampleLakeOptions): Promise<SampleMetadata> {
  const { directory, seed, signal } = options
  const onExisting = (await isSample(directory)) ? 'replace' : 'refuse'
  await mkdir(directory, { recursive: true })
  const lake = join(directory, 'lake')
  const written: WrittenLobFile[] = []
  const trades: SimulatedTrade[] = []
  const polymarketMarkets: SampleMarket[] = []
  for (const source of lobSources()) {
    const writer = new LobRecordingWriter({ lake, source, onExisting, isSample: true })
    try {
      for (const series of SAMPLE_SERIES.filter((candidate) => candidate.source === source)) {
        signal?.throwIfAborted()
        const isTraded = series.ticker === SAMPLE_TRADES_SERIES
        const described = appendSeries(writer, series, seed, (trade) => isTraded && trades.push(trade))
        if (source === 'polymarket') polymarketMarkets.push(...described)
      }
      written.push(...(await writer.finish()))
    } finally {
      await writer.discard()
    }
  }
  const [source] = lobSources()
  const traded = await writeSampleTrades(lake, source, SAMPLE_TRADES_SERIES, trades)
  const files = await Promise.all([
    ...written.map((file) => describeFile(directory, LOB_SCHEMA, file)),
    ...traded.map((file) => describeFile(directory, TRADES_SCHEMA, file)),
  ])
  const metadata: SampleMetadata = {
    description:
      'Simulated order books of temperature markets. Generated: none of it was ever quoted or traded.',
    generated: true,
    generator: GENERATOR,
    command: `${GENERATOR} --seed ${seed}`,
    seed,
    cases: sampleCases(),
    files,
    polymarketMarkets,
  }
  await replaceFile(join(directory, 'metadata.json'), `${JSON.stringify(metadata, null, 2)}\n`)
  return metadata
}

function appendSeries(
  writer: LobRecordingWriter,
  series: SampleSeries,
  seed: number,
  onTrade: (trade: SimulatedTrade) => void,
): SampleMarket[] {
  const { markets, described } = sampleMarkets(series, seed)
  writer.cover(series.ticker, BigInt(SAMPLE_FROM_MS) * NS_PER_MS)
  for (const event of recordSample(series, markets, seed, onTrade)) writer.append(series.ticker, event)
  writer.cover(series.ticker, BigInt(SAMPLE_TO_MS) * NS_PER_MS - 1n)
  return described
}

function sampleCases(): string[] {
  return [
    `the feed of the ${SAMPLE_OUTAGE.series} event of ${SAMPLE_OUTAGE.day} is lost from ` +
      `${new Date(SAMPLE_OUTAGE.fromMs).toISOString()} to ${new Date(SAMPLE_OUTAGE.toMs).toISOString()}`,
    `the highest bucket of the ${SAMPLE_DECI_CENT.series} event of ${SAMPLE_DECI_CENT.day} is quoted in tenths of a cent`,
    'events open at 14:00Z the day before and close at midnight local standard time: two are open at once for hours',
    'Polymarket prices below 4 and above 96 cents are in tenths of a cent',
    'some quantities are fractions of a contract',
  ]
}

/** Whether an earlier run of this generator wrote the directory. */
async function isSample(directory: string): Promise<boolean> {
  const text = await readFile(join(directory, 'metadata.json'), 'utf8').catch(() => '')
  const metadata = parsedJson(text) as Partial<SampleMetadata> | null | undefined
  return metadata?.generator === GENERATOR
}

async function describeFile(directory: string, schema: string, file: WrittenTrades): Promise<SampleFile> {
  const bytes = await readFile(file.path)
  return {
    path: relative(directory, file.path).split(sep).join('/'),
    schema,
    rows: file.rows,
    markets: file.markets,
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
}
