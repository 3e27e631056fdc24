// The Piscina task of a record request (candles, observations, trades, climate, coverage): reads lake and store, applies the
// rules, encodes and streams, all on this thread. Requests interleave while they wait for files, the store and clients.

import { setImmediate } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { RecordHead, RecordProbeTask, RecordQuery, RecordTask } from '../../shared/record-task.ts'
import type { RowSpan, WorkerThreadData, WarmTask } from '../../shared/stream-task.ts'
import { ChunkStream, RequestCancelled } from '../output/chunk-stream.ts'
import { failureOf } from '../output/stream-failure.ts'
import { pinnedFiles } from '../lake/pinned-files.ts'
import { watchFiles } from '../lake/watched-files.ts'
import { answerCandles } from './candles.ts'
import { answerClimate, answerClimateGaps } from './climate.ts'
import { DuckLake, loadDuckDb } from './duck-lake.ts'
import { answerObservations } from './observations.ts'
import { AnswerHeld, AnswerIdentity } from './answer-identity.ts'
import { NO_ROWS, type RecordAnswer } from './record-batch.ts'
import { candleBatches } from './record-columns.ts'
import { RecordContext, type RecordRequest } from './record-context.ts'
import { RECORD_ENCODERS } from './record-encoders.ts'
import { RequestMisplaced } from './request-cost.ts'
import { answerTrades } from './trades.ts'

// Null in a thread that no pool started.
const threadData = workerData as WorkerThreadData | null
const answered = threadData === null ? undefined : new Float64Array(threadData.answered)
const duck = new DuckLake({
  onAnswer: () => {
    if (answered !== undefined) answered[0] = Date.now()
  },
})
let context: RecordContext | undefined

export default async function runRecordTask(task: RecordTask | WarmTask | RecordProbeTask): Promise<void> {
  if ('warm' in task) return void (await loadDuckDb())
  if ('probe' in task) return duck.probe()
  const { port } = task
  const unwatch = watchFiles(task.watch, task.silentFiles)
  const client = new AbortController()
  // The chunk stream listens for this too. Here it also aborts queries.
  port.on('message', (message: { kind: string }) => {
    if (message.kind === 'cancel') client.abort()
  })
  port.on('close', () => client.abort())
  try {
    context ??= new RecordContext(task.lake, task.store, duck)
    const identity = new AnswerIdentity(task.query, task.validation)
    const { signal } = client
    const run = context.reader(signal)
    const { versions, isBulk } = task
    const pinned = pinnedFiles(task.lake, task.pin)
    await answer(task, { context, run, signal, identity, versions, pinned, isSmallExpected: !isBulk })
  } catch (error) {
    if (error instanceof RequestMisplaced) sendMisplaced(port)
    else if (!(error instanceof RequestCancelled) && !client.signal.aborted)
      port.postMessage(failureOf(error))
  } finally {
    unwatch()
    port.close()
  }
}

/** Tells the server to send the request to a thread for bulk requests. */
function sendMisplaced(port: RecordTask['port']): void {
  const nothing = {
    rows: 0,
    nextOffset: null,
    identity: null,
    isHeld: false,
    files: [],
    stamps: [],
    series: null,
    seenFiles: null,
  }
  port.postMessage({ kind: 'head', ...nothing, isMisplaced: true } satisfies RecordHead)
  port.postMessage({ kind: 'end', rows: 0 })
}

async function answer({ query, headOnly, port }: RecordTask, request: RecordRequest): Promise<void> {
  const planned = await unlessHeld(makeAnswer(query, request))
  const { rows, hasMore, batches } = planned ?? NO_ROWS
  const { name: identity, sources } = request.identity
  const { parts, series = null, seenFiles = null } = sources
  // A client that holds the answer knows its files.
  const files = planned === undefined ? [] : parts
  const head: RecordHead = {
    kind: 'head',
    rows,
    nextOffset: hasMore ? query.offset + rows : null,
    identity,
    files: files.map(({ name }) => name),
    stamps: files.map((file) => file.identity),
    series,
    seenFiles,
    isHeld: planned === undefined,
    isMisplaced: false,
  }
  if (headOnly || planned === undefined) {
    port.postMessage(head)
    port.postMessage({ kind: 'end', rows })
    return
  }
  const stream = new ChunkStream(port, head, 0)
  try {
    const encoder = RECORD_ENCODERS[query.format](fieldsOf(query.kind, query.columns), stream)
    let written = 0
    let span: RowSpan | undefined
    await encoder.begin()
    for await (const batch of batches()) {
      stream.throwIfCancelled()
      await encoder.write(batch)
      written += batch.rows
      if (batch.span !== undefined)
        span = { firstMs: span?.firstMs ?? batch.span.firstMs, lastMs: batch.span.lastMs }
      // Let the thread's other requests run.
      await setImmediate()
    }
    // A long answer may grow by rows that arrive while it is read.
    if (written < rows || (hasMore && written > rows))
      throw new Error(`planned ${rows} rows but wrote ${written}`)
    await encoder.finish()
    stream.end(written, span)
  } finally {
    stream.close()
  }
}

/** Undefined if the client or the server already holds the answer. */
async function unlessHeld(planned: Promise<RecordAnswer>): Promise<RecordAnswer | undefined> {
  try {
    return await planned
  } catch (error) {
    if (error instanceof AnswerHeld) return undefined
    throw error
  }
}

async function makeAnswer(query: RecordQuery, request: RecordRequest): Promise<RecordAnswer> {
  if (query.kind === 'candles') {
    const candles = await answerCandles(query, request)
    return { ...candles, batches: () => candleBatches(candles, fieldsOf('candles', query.columns)) }
  }
  if (query.kind === 'observations') return answerObservations(query, request)
  if (query.kind === 'trades') return answerTrades(query, request)
  if (query.kind === 'climate') return answerClimate(query, request)
  if (query.kind === 'climate-gaps') return answerClimateGaps(query, request)
  // Loaded on demand, because few threads need the code of order-book files.
  const { answerCoverage } = await import('./coverage.ts')
  return answerCoverage(query, request)
}
