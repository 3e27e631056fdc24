// The Piscina task of an order-book request: find the files, plan, refuse or answer, all on this worker's thread. It
// ends when the answer is complete, refused, failed or cancelled; every file it opened is closed by then.

import { ApiError } from '../../shared/errors.ts'
import { contentIdentity } from '../../shared/content-identity.ts'
import type { LobHead, LobTask, LobWarmTask } from '../../shared/lob-task.ts'
import { ChunkStream, RequestCancelled } from '../output/chunk-stream.ts'
import { failureOf } from '../output/stream-failure.ts'
import { prepareDecompression } from './decompress.ts'
import { LakeFile } from './lake-file.ts'
import { selectMarkets } from './market-search.ts'
import { planLob, refuseTooManyRows, type LobPlan } from './plan.ts'
import { planSink } from './snapshot-sink.ts'
import { writeSnapshots } from './snapshots.ts'
import { warmUp } from './warm-up.ts'

export default async function runLobTask(task: LobTask | LobWarmTask): Promise<void> {
  await prepareDecompression()
  if ('warm' in task) return warmUp()
  const { port } = task
  const files = new Map<string, LakeFile | undefined>()
  try {
    await answer(task, files)
  } catch (error) {
    if (!(error instanceof RequestCancelled)) port.postMessage(failureOf(error))
  } finally {
    for (const file of files.values()) file?.close()
    port.close()
  }
}

async function answer(task: LobTask, files: Map<string, LakeFile | undefined>) {
  const { lake, query, catalogue, headOnly, port } = task
  const { series, isWanted } = selectMarkets(lake, query, catalogue)
  const fileOf = (date: string): LakeFile | undefined => {
    if (!files.has(date)) files.set(date, LakeFile.open(lake, query.source, series, date))
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
  refuseTooManyRows(query, plan)
  const head = headOf(task, series, plan, files)
  if (headOnly || head.isHeld) {
    port.postMessage(head)
    port.postMessage({ kind: 'end', rows: plan.rows })
    return
  }
  const ids = [...new Set(plan.dates.flatMap(({ markets }) => markets.map(({ id }) => id)))].toSorted(
    (left, right) => (left < right ? -1 : 1),
  )
  const sinkPlan = planSink(query, ids)
  const stream = new ChunkStream(port, head, sinkPlan.reserveBytes)
  const rows = await writeSnapshots({
    query,
    plan,
    fileOf,
    marketNumbers: new Map(ids.map((id, number) => [id, number])),
    sink: sinkPlan.open(stream),
    checkpoint: () => stream.throwIfCancelled(),
  })
  if (rows !== plan.rows) throw new Error(`planned ${plan.rows} rows but wrote ${rows}`)
  stream.end(rows)
}

/** Whether the client holds the answer is told by the opened files alone: no row was read so far. */
function headOf(
  { query, catalogue, validation: { seed, held } }: LobTask,
  series: string,
  plan: LobPlan,
  files: ReadonlyMap<string, LakeFile | undefined>,
): LobHead {
  const dates = [...files.keys()].toSorted((left, right) => (left < right ? -1 : 1))
  const identities = dates.map((date) => `${date} ${files.get(date)?.identity ?? 'none'}`)
  const identity = contentIdentity([seed, series, JSON.stringify({ query, catalogue }), ...identities])
  return {
    kind: 'head',
    rows: plan.rows,
    missingDates: plan.missingDates,
    identity,
    writtenAtMs: dates.reduce((latest, date) => Math.max(latest, files.get(date)?.writtenAtMs ?? 0), 0),
    isHeld: held.includes(identity) || held.includes('*'),
  }
}
