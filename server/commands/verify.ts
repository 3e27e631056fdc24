// `bookcast verify`: the command line around server/verify.

import { Presets, SingleBar } from 'cli-progress'
import { STATIONS } from '../../shared/stations.ts'
import { StoreError } from '../../shared/store-error.ts'
import { addDays, MS_PER_DAY, utcDateOf } from '../../shared/utc-date.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { knownSeries } from '../ingest/exchange/catalogue-source.ts'
import { checkCandles } from '../verify/candle-check.ts'
import type { ScopeReport, VerifyContext } from '../verify/finding.ts'
import { checkObservations } from '../verify/observation-check.ts'
import { repairCandles, repairObservations } from '../verify/repair.ts'
import { type Command, type CommandIo } from './command.ts'
import { UsageError } from '../options/usage-error.ts'
import {
  dateOption,
  describeOptions,
  type OptionDeclaration,
  type ParsedOptions,
  parseOptions,
} from '../options/options.ts'
import { readStoreOptions, STORE_OPTIONS } from '../storage/store-options.ts'
import { openExistingStore } from './open-store.ts'
import { showHelp } from './terminal.ts'

/** Days that are looked at when no date is given. */
const DAYS_DEFAULT = 30

const OPTIONS: readonly OptionDeclaration[] = [
  {
    name: 'store',
    placeholder: '',
    description: 'count the candles and observations of the relational store and the lake; required',
    env: 'BOOKCAST_VERIFY_STORE',
    isFlag: true,
  },
  {
    name: 'from',
    placeholder: '<date>',
    description: `first UTC date (YYYY-MM-DD); ${DAYS_DEFAULT} days before the last one when it is not given`,
    env: 'BOOKCAST_VERIFY_FROM',
  },
  {
    name: 'to',
    placeholder: '<date>',
    description: 'last date; yesterday when it is not given',
    env: 'BOOKCAST_VERIFY_TO',
  },
  {
    name: 'repair',
    placeholder: '',
    description: 'open what is missing for the next backfill over these dates',
    env: 'BOOKCAST_VERIFY_REPAIR',
    isFlag: true,
  },
  {
    name: 'lake',
    placeholder: '<dir>',
    description: 'the lake to which rows have moved; needed when some have',
    env: 'BOOKCAST_LAKE',
  },
  ...STORE_OPTIONS,
]

const HELP = `Usage: bookcast verify --store [--from <date>] [--to <date>] [--lake <dir>] [--repair] [options]

Counts what is stored of each day against what there should be, and prints what is missing: the volume of a market's minute,
hour and day candles against one another and against the volume that the exchange states, once the market is settled; the
routine reports (METAR) of every station against its schedule, one an hour. Nothing is asked of any upstream.

With --repair exactly the windows that are missing are opened, and "bookcast ingest --from <date> --to <date>" over the same
dates fetches them and nothing else that is complete. Exit code 1 when something is missing.

${describeOptions(OPTIONS)}
`

export const verifyCommand: Command = async (args, io) => {
  const options = parseOptions(args, io.env, OPTIONS)
  if (options.help) return showHelp(HELP, io.stdout)
  if (!options.has('store')) throw new UsageError('--store is missing: it says what is to be verified')
  const dates = readDates(options)
  const store = await openExistingStore(readStoreOptions(options))
  try {
    const context: VerifyContext = {
      postgres: store.postgres,
      lake: options.get('lake')?.text ?? null,
      span: { fromMs: Date.parse(dates.from), toMs: Date.parse(dates.to) + MS_PER_DAY },
      nowMs: SYSTEM_CLOCK.nowMs(),
      signal: io.signal ?? new AbortController().signal,
    }
    const totals = await verifyAll(context, options.has('repair'), io)
    io.stdout.write(summary(totals, dates, options.has('repair')))
    return totals.missing === 0 ? 0 : 1
  } finally {
    await store.close()
  }
}

interface Dates {
  readonly from: string
  readonly to: string
}

function readDates(options: ParsedOptions): Dates {
  const to = dateOption(options.get('to')) ?? addDays(utcDateOf(SYSTEM_CLOCK.nowMs()), -1)
  const from = dateOption(options.get('from')) ?? addDays(to, 1 - DAYS_DEFAULT)
  if (to < from) throw new UsageError(`--from (${from}) must not be after the last date (${to})`)
  return { from, to }
}

interface Totals {
  marketDays: number
  stationDays: number
  missing: number
  opened: number
}

async function verifyAll(
  context: VerifyContext,
  isRepairing: boolean,
  { stdout, stderr }: Pick<CommandIo, 'stdout' | 'stderr'>,
): Promise<Totals> {
  const { postgres, nowMs, signal } = context
  const clock = { ...SYSTEM_CLOCK, nowMs: () => nowMs }
  const series = await knownSeries({ postgres, clock, signal }, null)
  const totals: Totals = { marketDays: 0, stationDays: 0, missing: 0, opened: 0 }
  const bar = startBar(stderr, series.length + STATIONS.length)
  const lines: string[] = []
  const add = ({ findings, scope }: ScopeReport): void => {
    totals.missing += findings.length
    for (const { of, text } of findings) lines.push(`${of} ${text}\n`)
    bar?.increment(1, { title: scope })
    // Not in the middle of a bar.
    if (bar === undefined) stdout.write(lines.splice(0).join(''))
  }
  try {
    for (const ticker of series) {
      const report = await countedOr(context, ticker, checkCandles)
      totals.marketDays += report.dayCount
      if (isRepairing) totals.opened += await repairCandles(postgres, report)
      add(report)
    }
    for (const { code } of STATIONS) {
      const report = await countedOr(context, code, checkObservations)
      totals.stationDays += report.dayCount
      if (isRepairing) totals.opened += await repairObservations(postgres, report)
      add(report)
    }
  } finally {
    bar?.stop()
    stdout.write(lines.join(''))
  }
  return totals
}

/** A lake file that cannot be read is a finding of its own, and hides no other one. */
async function countedOr(
  context: VerifyContext,
  scope: string,
  check: (context: VerifyContext, scope: string) => Promise<ScopeReport>,
): Promise<ScopeReport> {
  try {
    return await check(context, scope)
  } catch (error) {
    context.signal.throwIfAborted()
    if (context.lake === null || !(error instanceof Error) || error instanceof StoreError) throw error
    const finding = { of: scope, text: `cannot be counted: ${error.message}`, window: null }
    return { scope, dayCount: 0, findings: [finding] }
  }
}

function startBar(output: NodeJS.WriteStream, total: number): SingleBar | undefined {
  if (!output.isTTY) return undefined
  const format = 'verifying [{bar}] {value}/{total} {title}'
  const bar = new SingleBar({ format, hideCursor: true, stream: output }, Presets.shades_classic)
  bar.start(total, 0, { title: '' })
  return bar
}

function summary(totals: Totals, { from, to }: Dates, isRepairing: boolean): string {
  const { marketDays, stationDays, missing, opened } = totals
  const counted = `${from} to ${to}: ${marketDays} market-days and ${stationDays} station-days counted, `
  if (missing === 0) return `${counted}nothing is missing\n`
  if (!isRepairing) return `${counted}${missing} findings; --repair opens them\n`
  return (
    `${counted}${missing} findings, ${opened} windows opened: ` +
    `bookcast ingest --from ${from} --to ${to} fetches them\n`
  )
}
