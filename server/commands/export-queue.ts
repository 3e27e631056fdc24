// `bookcast export submit | status | cancel` and `bookcast work`: the command lines of the export queue. Only these commands
// load this module, because the queue takes a while to load.

import { hostname } from 'node:os'
import { finishExport } from '../export/export-manifest.ts'
import { type ExportPlan, type PlannedPart, readPlan } from '../export/export-plan.ts'
import { type ExportStatus, PART_ERRORS_MAX, PartQueue } from '../export/part-queue.ts'
import { type PartWork, PartWorker } from '../export/part-worker.ts'
import { asPlaceError } from '../export/place-error.ts'
import { runPart } from '../export/run-part.ts'
import { readVersion } from '../http/version.ts'
import { describeOptions, type OptionDeclaration, type ParsedOptions } from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'
import { readDatabaseUrl } from '../storage/store-options.ts'
import { syncLake } from '../sync/lake-sync.ts'
import { readPlace, SYNC_OPTIONS } from '../sync/sync-options.ts'
import { openObjectStore } from '../sync/sync-target.ts'
import { makeLake } from './directories.ts'
import { optionCommand } from './option-command.ts'
import type { CommandIo } from './command.ts'
import {
  QUEUE_OPTIONS,
  readConcurrency,
  RUN_OPTIONS,
  targetOf,
  withTarget,
  withThreads,
} from './export-options.ts'

const WORK_OPTIONS: readonly OptionDeclaration[] = [
  ...RUN_OPTIONS,
  ...QUEUE_OPTIONS,
  // A worker may get any part, so it pulls the whole lake.
  ...SYNC_OPTIONS.filter(({ name }) => name === 'sync-from'),
]

const WORK_HELP = `Usage: bookcast work --lake <dir> [--concurrency <n>] [--sync-from <place>] [options]

Makes the parts of submitted exports until you stop it. Start it on as many machines as you want. A plan names the lake files of
its parts: with --sync-from, the worker pulls the lake before the first part of an export and before it retries a failed part.
On SIGTERM, it returns its parts to the queue at once; the part of a killed worker goes to another one within 15 seconds.

${describeOptions(WORK_OPTIONS)}
`

/** Submits a plan and prints the id of the export. */
export async function submit(options: ParsedOptions, io: CommandIo, path: string): Promise<number> {
  const plan = await readPlan(path)
  return await withQueue(options, io, async (queue) => {
    io.stdout.write(`${await queue.submit(plan)}\n`)
    return 0
  })
}

/** Prints the progress of an export. Exit code 1 if it failed or was cancelled. */
export async function status(options: ParsedOptions, io: CommandIo, id: string): Promise<number> {
  return await withQueue(options, io, async (queue) => {
    const found = await queue.status(exportId(id))
    if (found === null) throw new Error(`there is no export ${id}`)
    io.stdout.write(statusText(found))
    return found.state === 'failed' || found.state === 'cancelled' ? 1 : 0
  })
}

/** Cancels an export. Finished parts stay at the target. */
export async function cancel(options: ParsedOptions, io: CommandIo, id: string): Promise<number> {
  return await withQueue(options, io, async (queue) => {
    if (!(await queue.cancel(exportId(id)))) throw new Error(`there is no running export ${id}`)
    io.stdout.write(`export ${id} is cancelled\n`)
    return 0
  })
}

export const workCommand = optionCommand(WORK_OPTIONS, WORK_HELP, async (options, io) => {
  // A worker on a new machine starts with an empty copy.
  if (options.get('sync-from') !== undefined) await makeLake(options.demand('lake').text)
  const line = (text: string): void => void io.stderr.write(`${text}\n`)
  return await withThreads(options, readConcurrency(options), async (threads) => {
    const pull = lakePull(options, threads.lake, io)
    const work: PartWork<ExportPlan, PlannedPart> = {
      version: readVersion(),
      prepare: pull.run,
      runPart: async (plan, part, signal) =>
        withTarget(targetOf(plan), options, threads.lake, async (target) =>
          runPart(plan, part, { threads, target }, signal),
        ),
      finish: async (plan, signal) =>
        withTarget(targetOf(plan), options, threads.lake, async (target) => {
          await finishExport(plan, target, signal)
        }),
    }
    const name = `${hostname()}:${process.pid}`
    const runWorker = async (queue: PartQueue): Promise<number> => {
      line(`working on exports as ${name}, ${threads.threads} parts at once`)
      await new PartWorker(queue, work, name, line).run(threads.threads, io.signal)
      return 0
    }
    return await withQueue(options, io, runWorker, true).finally(pull.close)
  })
})

/** Pulls the lake from `--sync-from`, if given. A call during a pull waits for that pull. */
function lakePull(options: ParsedOptions, lake: string, io: CommandIo) {
  const from = options.get('sync-from')
  if (from === undefined) return { run: async () => {}, close: () => {} }
  const remote = openObjectStore(from.text, readPlace(from, options))
  let running: Promise<void> | undefined
  const pull = async (): Promise<void> => {
    const { failures } = await syncLake({ lake, remote, direction: 'pull', signal: io.signal }).catch(
      (error: unknown) => {
        throw asPlaceError(error, io.signal)
      },
    )
    for (const { key, reason } of failures.slice(0, 1)) io.stderr.write(`cannot pull ${key}: ${reason}\n`)
  }
  return {
    run: async () => await (running ??= pull().finally(() => (running = undefined))),
    close: () => remote.close(),
  }
}

async function withQueue<Value>(
  options: ParsedOptions,
  io: CommandIo,
  use: (queue: PartQueue) => Promise<Value>,
  isWorker = false,
): Promise<Value> {
  const databaseUrl = readDatabaseUrl(options)
  if (databaseUrl === null)
    throw new UsageError(
      '--database-url is missing: the queue needs a PostgreSQL server; "bookcast export run" needs none',
    )
  const queue = await PartQueue.open(databaseUrl, isWorker, ({ message }) => {
    io.stderr.write(`The maintenance of the queue failed: ${message}\n`)
  }).catch((error: Error) => {
    throw new Error(`the queue cannot be reached: ${error.message}`, { cause: error })
  })
  try {
    return await use(queue)
  } finally {
    await queue.close()
  }
}

const ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** @throws {UsageError} */
function exportId(text: string): string {
  if (ID.test(text)) return text
  throw new UsageError(
    `${JSON.stringify(text)} is not an id of an export; "bookcast export submit" prints the id`,
  )
}

function statusText(found: ExportStatus): string {
  const { id, version, state, parts, workers, failures, message } = found
  const total = Object.values(parts).reduce((sum, count) => sum + count, 0)
  const others = Object.entries(parts).filter(([name, count]) => name !== 'done' && count > 0)
  return [
    `export ${id}: ${state === 'created' || state === 'retry' ? 'under way' : state}${message === null ? '' : `: ${message}`}`,
    `${parts.done} of ${total} parts done${others.map(([name, count]) => `, ${count} ${name}`).join('')}`,
    `${found.rows} rows, ${found.bytes} bytes, ${found.partsPerMinute} parts in the last minute`,
    `workers of Bookcast ${version}: ${workers.length === 0 ? 'none' : workers.join(', ')}`,
    ...failures.map(
      ({ index, errors, message: reason }) =>
        `part ${index} failed, ${errors} of ${PART_ERRORS_MAX} attempts used: ${reason}`,
    ),
    '',
  ].join('\n')
}
