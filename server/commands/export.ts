// `bookcast export`: the command lines of server/export.

import { isAbsolute, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '../../shared/errors.ts'
import { finishExport, foreignKeys, verifyExport } from '../export/export-manifest.ts'
import { type ExportPlan, type MadePlan, partAt, planLines, readPlan } from '../export/export-plan.ts'
import type { ExportTarget } from '../export/export-target.ts'
import { planExport } from '../export/planning.ts'
import { type PartRecord, runPart } from '../export/run-part.ts'
import {
  describeOptions,
  integerOption,
  type OptionDeclaration,
  parseOptions,
  type ParsedOptions,
} from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'
import { readStoreOptions } from '../storage/store-options.ts'
import { inParallel } from '../sync/in-parallel.ts'
import { parsePlace } from '../sync/sync-place.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import type { Command, CommandIo } from './command.ts'
import { isStoreThere } from './directories.ts'
import {
  PART_OPTIONS,
  PLAN_OPTIONS,
  QUEUE_OPTIONS,
  openTarget,
  readConcurrency,
  readPlanSettings,
  RUN_OPTIONS,
  TARGET_OPTIONS,
  targetOf,
  withTarget,
  withThreads,
} from './export-options.ts'
import { openSharedStore } from './open-store.ts'
import { mib, StepProgress } from './step-progress.ts'
import { showHelp } from './terminal.ts'

const PROBLEMS_SHOWN = 20
const PART_INDEX_MAX = 100_000_000

const HELP = `Usage: bookcast export plan --lake <dir> --from <date> --to <date> --out <place> [options] > plan.jsonl
       bookcast export run plan.jsonl --lake <dir> [options]
       bookcast export part plan.jsonl --index <n> --lake <dir> [options]
       bookcast export finish plan.jsonl [options]
       bookcast export verify <place> [options]
       bookcast export submit plan.jsonl [options]
       bookcast export status|cancel <id> [options]

Exports order books, trades, candles or observations of a lake, without row limits, to a directory or a bucket.

plan writes a plan to stdout: the parts (a date of a series' order books or trades, a month of its candles, a year of a station's
observations), the lake files of each part, and what is left out. It reads the lake, and asks the store, if there is one, for close
times and for rows that are not in the lake yet. part makes one part, with the same bytes on any machine. finish writes
manifest.json and SHA256SUMS once all parts are there. run makes all parts in one process and finishes. You can repeat run, part
and finish: finished parts are not made again. verify reads every byte of an export.

submit adds each part as a job to a queue in PostgreSQL, for any number of "bookcast work" processes, and prints the id of the
export. The worker of the last part finishes the export. status shows progress, rate, workers, and why parts failed. cancel ends it.

Options of plan:
${describeOptions(PLAN_OPTIONS)}

Options of run:
${describeOptions(RUN_OPTIONS)}

Options of part:
${describeOptions(PART_OPTIONS)}

Options of finish and verify:
${describeOptions(TARGET_OPTIONS)}

Options of submit, status and cancel:
${describeOptions(QUEUE_OPTIONS)}

Exit codes: 0 done, 1 failed or interrupted, 2 wrong usage or a plan that does not fit.
`

/** A subcommand of `export`. `place` is the path of the plan, the export to verify, or the id of a submitted export. */
interface ExportCommand {
  readonly options: readonly OptionDeclaration[]
  readonly takes: string | null
  readonly run: (options: ParsedOptions, io: CommandIo, place: string) => Promise<number>
}

const COMMANDS: ReadonlyMap<string, ExportCommand> = new Map([
  ['plan', { options: PLAN_OPTIONS, takes: null, run: makePlan }],
  ['part', { options: PART_OPTIONS, takes: 'a plan', run: makePart }],
  ['finish', { options: TARGET_OPTIONS, takes: 'a plan', run: finish }],
  ['run', { options: RUN_OPTIONS, takes: 'a plan', run }],
  ['verify', { options: TARGET_OPTIONS, takes: 'a directory or s3://bucket/prefix', run: verify }],
  ['submit', queueCommand('submit', 'a plan')],
  ['status', queueCommand('status', 'an id')],
  ['cancel', queueCommand('cancel', 'an id')],
])

function queueCommand(name: 'submit' | 'status' | 'cancel', takes: string): ExportCommand {
  // The queue takes a while to load, and the other commands do not need it.
  return {
    options: QUEUE_OPTIONS,
    takes,
    run: async (...call) => (await import('./export-queue.ts'))[name](...call),
  }
}

export const exportCommand: Command = async ([name = '--help', ...args], io) => {
  if (name === '--help' || name === '-h') return showHelp(HELP, io.stdout)
  const command = COMMANDS.get(name)
  if (command === undefined)
    throw new UsageError(`export takes ${[...COMMANDS.keys()].join(', ')}, not ${JSON.stringify(name)}`)
  const isPlaceGiven = command.takes !== null && args[0]?.startsWith('-') === false
  const options = parseOptions(isPlaceGiven ? args.slice(1) : args, io.env, command.options)
  if (options.help) return showHelp(HELP, io.stdout)
  if (command.takes !== null && !isPlaceGiven)
    throw new UsageError(`${command.takes} must be given: bookcast export ${name} <${command.takes}>`)
  try {
    return await command.run(options, io, args[0] ?? '')
  } catch (error) {
    if (io.signal.aborted) {
      io.stderr.write(`bookcast export ${name}: interrupted; the next run continues from here\n`)
      return 1
    }
    const isWrongUse = error instanceof ApiError && error.errors.length > 0
    throw isWrongUse ? new UsageError(error.message) : error
  }
}

async function makePlan(options: ParsedOptions, { stdout, stderr, signal }: CommandIo): Promise<number> {
  const settings = readPlanSettings(options)
  // Only checks the target; this opens no connection.
  openTarget(settings.target, options, options.demand('lake').text).close()
  const place = readStoreOptions(options)
  return await withThreads(options, readConcurrency(options, settings.dataset), async (threads) => {
    const opened = (await isStoreThere(place)) ? await openSharedStore(place) : null
    try {
      const target = targetText(settings.target.text)
      const made = await planExport({
        ...settings,
        target,
        threads,
        store: opened && opened.postgres,
        nowMs: SYSTEM_CLOCK.nowMs(),
        signal,
      })
      await pipeline(planLines(made), stdout, { end: false })
      stderr.write(planText(made))
      return 0
    } finally {
      await opened?.close()
    }
  })
}

/** Makes a path absolute, because processes that make parts may start in other directories. */
function targetText(text: string): string {
  return parsePlace(text)?.kind === 's3' || isAbsolute(text) ? text : resolve(text)
}

function planText({ parts, rows, left_out: left, ...plan }: MadePlan): string {
  const lines = left.slice(0, PROBLEMS_SHOWN).map(({ scope, from, to, reason, rows: count }) => {
    const dates = from === to ? from : `${from} to ${to}`
    return `left out: ${scope} ${dates}: ${reason.replaceAll('_', ' ')}${count === undefined ? '' : ` (${count})`}\n`
  })
  if (left.length > lines.length) lines.push(`and ${left.length - lines.length} more\n`)
  if (!plan.store_asked)
    lines.push('no store found: close times of markets and rows that are not in the lake yet are unknown\n')
  return `${parts.length} parts, ${rows} rows, about ${mib(plan.estimated_bytes)}\n${lines.join('')}`
}

async function makePart(
  options: ParsedOptions,
  { stdout, signal }: CommandIo,
  path: string,
): Promise<number> {
  const plan = await readPlan(path)
  const part = await partAt(plan, integerOption(options.demand('index'), 0, PART_INDEX_MAX))
  return await withTarget(targetOf(plan), options, options.demand('lake').text, async (target) =>
    withThreads(options, 1, async (threads) => {
      stdout.write(`${partText(await runPart(plan, part, { threads, target }, signal))}\n`)
      return 0
    }),
  )
}

async function run(options: ParsedOptions, io: CommandIo, path: string): Promise<number> {
  const plan = await readPlan(path)
  const { part_count: count, estimated_bytes: bytes } = plan
  return await withTarget(targetOf(plan), options, options.demand('lake').text, async (target) =>
    withThreads(options, readConcurrency(options, plan.dataset), async (threads) => {
      const progress = new StepProgress(io.stderr)
      progress.step(`exporting ${count} parts`, bytes)
      let doneCount = 0
      // The first failure stops all parts: most failures (target, lake) concern every part.
      const failing = new AbortController()
      const signal = AbortSignal.any([io.signal, failing.signal])
      const tools = { threads, target, onBytes: (more: number) => progress.add(more) }
      let failure: unknown
      try {
        await inParallel(plan.parts, { parallel: threads.threads, signal }, async (part) => {
          try {
            const record = await runPart(plan, part, tools, signal)
            progress.line(`${(doneCount += 1)}/${count} ${partText(record)}`)
          } catch (error) {
            failure ??= error
            failing.abort()
            throw error
          }
        })
      } catch (error) {
        throw failure ?? error
      } finally {
        progress.stop()
      }
      return await finished(plan, target, io)
    }),
  )
}

async function finish(options: ParsedOptions, io: CommandIo, path: string): Promise<number> {
  const plan = await readPlan(path)
  return await withTarget(targetOf(plan), options, undefined, async (target) => finished(plan, target, io))
}

async function finished(plan: ExportPlan, target: ExportTarget, io: CommandIo): Promise<number> {
  const { keys, rows, bytes } = await finishExport(plan, target, io.signal)
  const foreign = await foreignKeys(keys, target, io.signal)
  if (foreign.length > 0)
    io.stderr.write(
      `${target.name} also has ${foreign.length} files that are not part of this export, such as ${foreign[0]}; engines that read all files read them too\n`,
    )
  io.stdout.write(`${target.name}: ${keys.length} parts, ${rows} rows, ${mib(bytes)}\n`)
  return 0
}

async function verify(options: ParsedOptions, io: CommandIo, place: string): Promise<number> {
  return await withTarget({ text: place, origin: 'export verify' }, options, undefined, async (target) => {
    const { problems, parts, bytes } = await verifyExport(target, io.signal)
    for (const problem of problems.slice(0, PROBLEMS_SHOWN)) io.stderr.write(`${problem}\n`)
    if (problems.length > PROBLEMS_SHOWN) io.stderr.write(`and ${problems.length - PROBLEMS_SHOWN} more\n`)
    io.stdout.write(`${parts} parts, ${mib(bytes)}, ${problems.length} problems\n`)
    return problems.length === 0 ? 0 : 1
  })
}

function partText({ key, rows, bytes }: PartRecord): string {
  return `${key}: ${rows} rows, ${mib(bytes)}`
}
