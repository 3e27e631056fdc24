// Makes the body of an answer for its figures alone, block by block. Nothing is sent.

import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import type { LobReceipt } from '../../shared/lob-receipt.ts'
import { SECONDS_PER_HOUR } from '../../shared/utc-date.ts'
import { MeasuringStream } from '../output/measuring-stream.ts'
import { countRows, type LobPlan, spanOf } from './plan.ts'
import type { Section } from './sections.ts'
import type { SectionSink, SinkPlan, SnapshotSink } from './snapshot-sink.ts'
import { writeSections, writeSnapshots, type SnapshotJob } from './snapshots.ts'

export interface ReceiptJob extends Omit<SnapshotJob, 'sink'> {
  readonly plan: LobPlan
  /** The blocks of a text answer, in the order of its rows. */
  readonly blocks: readonly Section[]
  readonly textSink: () => SinkPlan<SectionSink>
  readonly anySink: () => SinkPlan
  readonly bookTimes: Pick<LobReceipt, 'knownS' | 'gapS'>
}

/** Throws where fewer or more rows are made than planned. */
export async function makeReceipt({
  plan,
  blocks,
  textSink,
  anySink,
  bookTimes,
  ...job
}: ReceiptJob): Promise<LobReceipt> {
  const { query, checkpoint } = job
  const isText = OUTPUT_FORMATS[query.format].isText
  const open = <Sink extends SnapshotSink>(sinkPlan: SinkPlan<Sink>) => {
    const stream = new MeasuringStream(sinkPlan.reserveBytes, checkpoint)
    return { stream, sink: sinkPlan.open(stream) }
  }
  let next = 0
  let rows: number
  let figures: ReturnType<MeasuringStream['finish']>
  if (isText) {
    const { stream, sink } = open(textSink())
    await sink.begin()
    rows = await writeSections({ ...job, sink }, blocks, () => next++)
    await sink.finish()
    figures = stream.finish()
  } else {
    const { stream, sink } = open(anySink())
    rows = await writeSnapshots({ ...job, sink }, plan)
    figures = stream.finish()
  }
  if (rows !== plan.rows) throw new Error(`planned ${plan.rows} rows but made ${rows}`)
  const { bytes, sha256 } = figures
  const span = spanOf(query, plan)
  return {
    bytes,
    sha256,
    rows,
    firstSeconds: span === undefined ? null : span.firstMs / 1000,
    lastSeconds: span === undefined ? null : span.lastMs / 1000,
    markets: job.marketNumbers.size,
    ...bookTimes,
    blocks: isText
      ? blocks.map(({ datePlan, firstTick, lastTick }, number) => ({
          seconds: startOf(datePlan.startSeconds + firstTick * query.intervalS),
          rows: countRows(datePlan.markets, lastTick + 1) - countRows(datePlan.markets, firstTick),
          ...figures.blocks[number]!,
        }))
      : [],
  }
}

function startOf(seconds: number): number {
  return Math.floor(seconds / SECONDS_PER_HOUR) * SECONDS_PER_HOUR
}
