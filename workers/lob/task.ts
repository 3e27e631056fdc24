// The Piscina task of an order-book request: finds the files, plans, and refuses or answers, all on this worker's thread. It ends
// when the answer is complete, refused, failed or cancelled; all files that it opened are closed then.

import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import { ApiError } from '../../shared/errors.ts'
import { contentIdentity } from '../../shared/content-identity.ts'
import { lobKey } from '../../shared/lake-layout.ts'
import { LOB_SECTION_CHUNKS_MAX } from '../../shared/limits.ts'
import {
  takeSection,
  type LobHead,
  type LobInstant,
  type LobOutline,
  type LobQuery,
  type LobSections,
  type LobTask,
} from '../../shared/lob-task.ts'
import { ChunkStream, RequestCancelled } from '../output/chunk-stream.ts'
import { failureOf } from '../output/stream-failure.ts'
import { booksAt } from './books-at.ts'
import { bookTimes, partialDates, refuseGaps, skippingGaps } from './book-gaps.ts'
import { prepareDecompression } from '../../shared/lob-file/decompress.ts'
import { type FileOfDate, LakeFile } from './lake-file.ts'
import { selectMarkets } from './market-search.ts'
import { countRows, planLob, refuseTooManyRows, spanOf, type LobPlan } from './plan.ts'
import {
  costInRows,
  groupsOf,
  planFrom,
  planReceipt,
  sectionRowsMax,
  sectionsOf,
  type Section,
} from './sections.ts'
import { planSink } from './snapshot-sink.ts'
import { writeSections, writeSnapshots } from './snapshots.ts'
import { warmUp } from './warm-up.ts'
import { pinnedFiles } from '../lake/pinned-files.ts'
import { watchFiles } from '../lake/watched-files.ts'
import type { WarmTask } from '../../shared/stream-task.ts'

/** An answer that costs less than this many rows is made by one thread: dividing it would cost more. */
export const LOB_SECTIONS_ROWS_MIN = 20_000

/** The files and the stream of a task, and whether it has taken a section. */
interface Progress {
  readonly files: Map<string, LakeFile | undefined>
  hasTakenSection: boolean
  stream: ChunkStream | undefined
}

/** The cost in rows from which an answer is divided among threads, and the maximum size of its sections. */
export interface SharingBounds {
  readonly rowsMin: number
  readonly sectionChunksMax: number
}

const BOUNDS: SharingBounds = { rowsMin: LOB_SECTIONS_ROWS_MIN, sectionChunksMax: LOB_SECTION_CHUNKS_MAX }

/** Only tests pass other `bounds`. All threads of one answer must have the same. */
export default async function runLobTask(task: LobTask | WarmTask, bounds = BOUNDS): Promise<void> {
  await prepareDecompression()
  if ('warm' in task) return warmUp()
  const { assistance, port } = task
  const unwatch = watchFiles(task.watch, task.silentFiles)
  const progress: Progress = { files: new Map(), hasTakenSection: false, stream: undefined }
  try {
    await answer(task, progress, bounds)
  } catch (error) {
    // An assistant that has not taken a section ends without an error: the leader opened the files before they broke.
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
  const version = pinnedFiles(lake, task.pin)
  const { series, seriesOf, isWanted, datesOf } = selectMarkets(lake, query, catalogue, version)
  const fileOf = (date: string): LakeFile | undefined => {
    if (!files.has(date)) files.set(date, LakeFile.open(lake, query.source, seriesOf(date), date, version))
    return files.get(date)
  }
  // Every file of the answer is open before its first byte, so that a later replacement does not change the answer.
  const closesAtMs = catalogue?.closesAtMs
  const plan = planLob(
    query,
    isWanted,
    (date) => fileOf(date)?.index,
    closesAtMs,
    skippingGaps(query, fileOf),
  )
  if (plan.dates.length === 0) throw noData(query, series, datesOf(series))
  if (query.at !== undefined) {
    return await answerAt(task, progress, { series, fileOf, plan, isWanted, at: query.at })
  }
  refuseGaps(query, plan, fileOf)
  if (task.isUnlimited !== true) refuseTooManyRows(query, plan)
  const outline = task.isUnlimited === true ? outlineOf(plan, query, fileOf) : undefined
  const present = headOf(task, series, plan, files, isWanted)
  const isTimed = task.part === 'receipt' && assistance === null
  // After the head, which lists the opened files: the times also depend on the file of the date before.
  const times = isTimed ? bookTimes(query, plan, fileOf, isWanted, closesAtMs) : undefined
  const head = { ...present, outline, bookTimes: times }
  if (assistance !== null && assistance.identity !== head.identity) {
    // An assistant that opened other files than the leader must not make rows.
    port.postMessage({ kind: 'end', rows: 0 })
    return
  }
  if (headOnly || head.isHeld) {
    port.postMessage(head)
    port.postMessage({ kind: 'end', rows: plan.rows })
    return
  }
  await answerRows(task, progress, bounds, { head, plan, fileOf })
}

interface RowsAnswer {
  readonly head: LobHead
  readonly plan: LobPlan
  readonly fileOf: FileOfDate
}

/** Writes the rows of a plan, or this thread's sections of it. */
async function answerRows(
  { query, part, assistance, port }: LobTask,
  progress: Progress,
  bounds: SharingBounds,
  { head, plan, fileOf }: RowsAnswer,
): Promise<void> {
  const ids = marketIdsOf(plan)
  const blocks = part === undefined ? [] : sectionsOf(plan, query, fileOf, Number.MAX_SAFE_INTEGER)
  // If the files have changed since the receipt, the block may not exist; the server compares the identity.
  const fromBlock = typeof part === 'object' ? part.fromBlock : 0
  const block = fromBlock === 0 ? undefined : blocks[fromBlock]
  const made = block === undefined ? plan : planFrom(plan, block)
  const isLarge = costInRows(made, query, fileOf) >= bounds.rowsMin
  const { isText, isSectioned } = OUTPUT_FORMATS[query.format]
  const sinkPlan = planSink(query, ids, plan.rows, block !== undefined)
  const isSharedOut = isSectioned && isLarge && block === undefined
  const isReceipt = typeof part === 'string'
  // The sections of a receipt are its blocks; each thread measures those that it makes.
  const textSections = (): readonly Section[] => {
    if (isReceipt) return blocks
    return isSharedOut
      ? sectionsOf(plan, query, fileOf, sectionRowsMax(sinkPlan, bounds.sectionChunksMax))
      : []
  }
  const sections = isText ? textSections() : []
  const shared = assistance?.sections ?? (isSharedOut ? sharedSections(sections) : null)
  const receiptPlan =
    isReceipt && assistance === null
      ? {
          ...planReceipt(query, plan, sections),
          markets: ids.length,
        }
      : undefined
  const told = { ...head, rows: made.rows, sections: shared, receiptPlan }
  const stream = new ChunkStream(port, told, sinkPlan.reserveBytes, isReceipt)
  progress.stream = stream
  const sink = sinkPlan.open(stream)
  const job = {
    query,
    fileOf,
    marketNumbers: new Map(ids.map((id, number) => [id, number])),
    stream,
    sink,
    // A small answer is complete before its status is sent, so that the status can report an error in its files. Parquet sends
    // whole row groups.
    isOpenedEarly: isLarge && assistance === null && isText,
  }
  if (sections.length === 0) {
    const rows = await writeSnapshots(job, made)
    if (rows !== made.rows) throw new Error(`planned ${made.rows} rows but wrote ${rows}`)
    stream.end(rows, spanOf(query, made))
    return
  }
  let next = 0
  const take = (): number => {
    progress.hasTakenSection = true
    return shared === null ? next++ : takeSection(shared)
  }
  if (assistance !== null) {
    const takeWhileWanted = async (): Promise<number> =>
      (await stream.isMoreWanted()) ? take() : sections.length
    stream.end(await writeSections(job, sections, takeWhileWanted))
    return
  }
  await sink.begin()
  const rows = await writeSections(job, sections, take)
  await sink.finish()
  stream.end(rows, spanOf(query, plan))
}

/** In code unit order. */
function marketIdsOf({ dates }: LobPlan): string[] {
  const ids = new Set(dates.flatMap(({ markets }) => markets.map(({ id }) => id)))
  return [...ids].toSorted()
}

/** The error if none of the requested dates has a file. `there`: the dates that have one. */
function noData({ source, dates }: LobQuery, series: string, there: readonly string[]): ApiError {
  const [first, last] = [dates[0]!, dates.at(-1)!]
  const asked = first === last ? first : `${first} to ${last}`
  const before = there
    .filter((date) => date < first)
    .toSorted()
    .at(-1)
  const after = there.filter((date) => date > last).toSorted()[0]
  const nearest = [before, after].filter((date) => date !== undefined)
  const hint =
    nearest.length === 0
      ? ''
      : ` The nearest ${nearest.length === 1 ? 'date is' : 'dates are'} ${nearest.join(' and ')}.`
  return new ApiError(
    'no_data',
    `There is no order-book file of ${source} series ${series} for ${asked}.${hint}`,
  )
}

interface InstantAnswer {
  readonly series: string
  readonly fileOf: FileOfDate
  readonly plan: LobPlan
  readonly isWanted: (marketId: string) => boolean
  readonly at: LobInstant
}

/** Sends the books at one instant, as one JSON list. */
async function answerAt(task: LobTask, progress: Progress, asked: InstantAnswer): Promise<void> {
  const { query, catalogue, headOnly, port } = task
  const { series, fileOf, plan, isWanted, at } = asked
  const head = { ...headOf(task, series, plan, progress.files, isWanted), rows: 0 }
  if (headOnly || head.isHeld) {
    port.postMessage(head)
    port.postMessage({ kind: 'end', rows: 0 })
    return
  }
  const closesAtMs = catalogue?.closesAtMs ?? {}
  const records = booksAt({ date: query.dates[0]!, levels: query.levels, at, fileOf, isWanted, closesAtMs })
  const stream = new ChunkStream(port, { ...head, rows: records.length }, 0)
  progress.stream = stream
  await stream.write(new TextEncoder().encode(`[${records.join(',')}]`))
  stream.end(records.length)
}

function outlineOf(plan: LobPlan, query: LobQuery, fileOf: FileOfDate): LobOutline {
  return {
    rowGroups: groupsOf(plan, query, fileOf).length,
    dateRowsMax: plan.dates.reduce((most, { markets }) => Math.max(most, countRows(markets)), 0),
  }
}

/** The head of the answer. The contents of the open files tell whether the client holds it; no row has been read. */
function headOf(
  { query, catalogue, validation: { seed, held } }: LobTask,
  series: string,
  plan: LobPlan,
  files: ReadonlyMap<string, LakeFile | undefined>,
  isWanted: (marketId: string) => boolean,
): LobHead {
  const dates = [...files.keys()].toSorted()
  const contents = dates.map((date) => `${date} ${files.get(date)?.contents ?? 'none'}`)
  const there = dates.flatMap((date) => files.get(date) ?? [])
  const identity = contentIdentity([seed, series, JSON.stringify({ query, catalogue }), ...contents])
  return {
    kind: 'head',
    rows: plan.rows,
    lastRow: plan.lastRow,
    missingDates: plan.missingDates,
    partialDates: partialDates(query, plan, (date) => files.get(date), isWanted, catalogue?.closesAtMs),
    files: there.map(({ name }) => name),
    stamps: there.map(({ stamp }) => stamp),
    absent: dates
      .filter((date) => files.get(date) === undefined)
      .map((date) => lobKey(query.source, series, date)),
    identity,
    writtenAtMs: there.reduce((latest, { writtenAtMs }) => Math.max(latest, writtenAtMs), 0),
    isHeld: held.includes(identity) || held.includes('*'),
    sections: null,
  }
}

function sharedSections({ length }: readonly Section[]): LobSections | null {
  return length > 1 ? { count: length, next: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT) } : null
}
