// The Piscina task of an order-book request: find the files, plan, refuse or answer, all on this worker's thread. It
// ends when the answer is complete, refused, failed or cancelled; every file it opened is closed by then.

import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import { ApiError } from '../../shared/errors.ts'
import { contentIdentity } from '../../shared/content-identity.ts'
import { LOB_SECTION_CHUNKS_MAX } from '../../shared/limits.ts'
import {
  takeSection,
  type LobHead,
  type LobQuery,
  type LobTask,
  type LobWarmTask,
} from '../../shared/lob-task.ts'
import type { RowSpan } from '../../shared/stream-task.ts'
import { ChunkStream, RequestCancelled } from '../output/chunk-stream.ts'
import { failureOf } from '../output/stream-failure.ts'
import { prepareDecompression } from './decompress.ts'
import { LakeFile } from './lake-file.ts'
import { selectMarkets } from './market-search.ts'
import { planLob, refuseTooManyRows, type LobPlan } from './plan.ts'
import { costInRows, sectionRowsMax, sectionsOf, type Section } from './sections.ts'
import {
  planSink,
  planTextSink,
  type SectionSink,
  type SinkPlan,
  type SnapshotSink,
} from './snapshot-sink.ts'
import { writeSections, writeSnapshots, type SnapshotJob } from './snapshots.ts'
import { warmUp } from './warm-up.ts'
import { watchFiles } from '../lake/watched-files.ts'

/** Order-book answers that cost less than so many rows are made by one thread: sharing them out would cost more. */
export const LOB_SECTIONS_ROWS_MIN = 20_000

/** What a task has opened and promised so far. */
interface Progress {
  readonly files: Map<string, LakeFile | undefined>
  hasTakenSection: boolean
  stream: ChunkStream | undefined
}

/** From which cost in rows on an answer is shared out, and how large its sections may be. */
export interface SharingBounds {
  readonly rowsMin: number
  readonly sectionChunksMax: number
}

const BOUNDS: SharingBounds = { rowsMin: LOB_SECTIONS_ROWS_MIN, sectionChunksMax: LOB_SECTION_CHUNKS_MAX }

/** `bounds` are those of limits.ts but in tests; all threads of one answer must have the same. */
export default async function runLobTask(task: LobTask | LobWarmTask, bounds = BOUNDS): Promise<void> {
  await prepareDecompression()
  if ('warm' in task) return warmUp()
  const { assistance, port } = task
  const unwatch = watchFiles(task.watch, task.silentFiles)
  const progress: Progress = { files: new Map(), hasTakenSection: false, stream: undefined }
  try {
    await answer(task, progress, bounds)
  } catch (error) {
    // An assistant that has promised nothing does no harm: the leader had its files open before they broke.
    if (assistance !== null && !progress.hasTakenSection) port.postMessage({ kind: 'end', rows: 0 })
    else if (!(error instanceof RequestCancelled)) port.postMessage(failureOf(error))
  } finally {
    for (const file of progress.files.values()) file?.close()
    progress.stream?.close()
    unwatch()
    port.close()
  }
}

async function answer(task: LobTask, progress: Progress, bounds: SharingBounds): Promise<void> {
  const { files } = progress
  const { lake, query, catalogue, headOnly, assistance, port } = task
  const { series, seriesOf, isWanted } = selectMarkets(lake, query, catalogue)
  const fileOf = (date: string): LakeFile | undefined => {
    if (!files.has(date)) files.set(date, LakeFile.open(lake, query.source, seriesOf(date), date))
    return files.get(date)
  }
  // Every file the answer needs is open before its first byte: nothing replaced later can change it.
  const plan = planLob(query, isWanted, (date) => fileOf(date)?.index, catalogue?.closesAtMs)
  if (plan.dates.length === 0) {
    const dates = query.dates.length === 1 ? query.dates[0] : `${query.dates[0]} to ${query.dates.at(-1)}`
    throw new ApiError(
      'no_data',
      `There is no order-book file of ${query.source} series ${series} for ${dates}.`,
    )
  }
  if (task.isUnlimited !== true) refuseTooManyRows(query, plan)
  const ids = [...new Set(plan.dates.flatMap(({ markets }) => markets.map(({ id }) => id)))].toSorted(
    (left, right) => (left < right ? -1 : 1),
  )
  const isLarge = costInRows(plan, query, fileOf) >= bounds.rowsMin
  const isSharedOut = OUTPUT_FORMATS[query.format].isSectioned && isLarge
  const job = {
    query,
    fileOf,
    marketNumbers: new Map(ids.map((id, number) => [id, number])),
    // A small answer is made before its status is sent, which can then still say what is wrong with its files. Parquet
    // sends whole row groups.
    isOpenedEarly: isLarge && assistance === null && OUTPUT_FORMATS[query.format].isText,
  }
  const textPlan = isSharedOut ? planTextSink(query, ids) : null
  const sections =
    textPlan === null
      ? []
      : sectionsOf(plan, query, fileOf, sectionRowsMax(textPlan, bounds.sectionChunksMax))
  const head = headOf(task, series, plan, sections, files)
  const open = <Sink extends SnapshotSink>(sinkPlan: SinkPlan<Sink>) => {
    const stream = new ChunkStream(port, head, sinkPlan.reserveBytes)
    progress.stream = stream
    const checkpoint = (): void => stream.throwIfCancelled()
    return { stream, job: { ...job, sink: sinkPlan.open(stream), checkpoint } }
  }
  if (assistance !== null && assistance.identity !== head.identity) {
    // With other files than the leader's nothing may be made.
    port.postMessage({ kind: 'end', rows: 0 })
  } else if (headOnly || head.isHeld) {
    port.postMessage(head)
    port.postMessage({ kind: 'end', rows: plan.rows })
  } else if (textPlan === null || head.sections === null) {
    const { stream, job: wholeJob } = open(textPlan ?? planSink(query, ids))
    const rows = await writeSnapshots(wholeJob, plan)
    if (rows !== plan.rows) throw new Error(`planned ${plan.rows} rows but wrote ${rows}`)
    stream.end(rows, spanOf(query, plan))
  } else {
    const { stream, job: sectionJob } = open(textPlan)
    const shared = assistance?.sections ?? head.sections
    const take = (): number => {
      progress.hasTakenSection = true
      return takeSection(shared)
    }
    if (assistance === null) {
      const rows = await lead(sectionJob, sections, take)
      stream.end(rows, spanOf(query, plan))
    } else await assist(stream, sectionJob, sections, take)
  }
}

/** Writes what comes before the first row, and then those sections that no assistant gets hold of. */
async function lead(
  job: SnapshotJob<SectionSink>,
  sections: readonly Section[],
  take: () => number,
): Promise<number> {
  await job.sink.begin()
  return await writeSections(job, sections, take)
}

/** The first and the last tick that a row of the plan has. */
function spanOf({ intervalS }: LobQuery, { dates }: LobPlan): RowSpan | undefined {
  let span: RowSpan | undefined
  for (const { startSeconds, markets } of dates)
    for (const { firstTick, lastTick } of markets) {
      const firstMs = (startSeconds + firstTick * intervalS) * 1000
      const lastMs = (startSeconds + lastTick * intervalS) * 1000
      span = {
        firstMs: Math.min(firstMs, span?.firstMs ?? firstMs),
        lastMs: Math.max(lastMs, span?.lastMs ?? lastMs),
      }
    }
  return span
}

/** Writes those sections that this thread gets hold of, until none is wanted of it any more. */
async function assist(
  stream: ChunkStream,
  job: SnapshotJob<SectionSink>,
  sections: readonly Section[],
  take: () => number,
): Promise<void> {
  const takeWhileWanted = async (): Promise<number> =>
    (await stream.isMoreWanted()) ? take() : sections.length
  stream.end(await writeSections(job, sections, takeWhileWanted))
}

/** Whether the client holds the answer is told by the opened files alone: no row was read so far. */
function headOf(
  { query, catalogue, validation: { seed, held } }: LobTask,
  series: string,
  plan: LobPlan,
  sections: readonly Section[],
  files: ReadonlyMap<string, LakeFile | undefined>,
): LobHead {
  const dates = [...files.keys()].toSorted((left, right) => (left < right ? -1 : 1))
  const identities = dates.map((date) => `${date} ${files.get(date)?.identity ?? 'none'}`)
  const identity = contentIdentity([seed, series, JSON.stringify({ query, catalogue }), ...identities])
  return {
    kind: 'head',
    rows: plan.rows,
    missingDates: plan.missingDates,
    files: dates.flatMap((date) => files.get(date)?.name ?? []),
    identity,
    writtenAtMs: dates.reduce((latest, date) => Math.max(latest, files.get(date)?.writtenAtMs ?? 0), 0),
    isHeld: held.includes(identity) || held.includes('*'),
    sections:
      sections.length > 1
        ? { count: sections.length, next: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT) }
        : null,
  }
}
