// `bookcast verify`: the command line of server/verify.

import { Presets, SingleBar } from 'cli-progress'
import { STATIONS } from '../../shared/stations.ts'
import type { SourceName } from '../ingest/source.ts'
import { StoreError } from '../../shared/store-error.ts'
import { addDays, MS_PER_DAY, utcDateOf } from '../../shared/utc-date.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { knownSeries } from '../ingest/exchange/catalogue-source.ts'
import { checkCandles } from '../verify/candle-check.ts'
import { checkClimateReports } from '../verify/climate-check.ts'
import type { ScopeReport, VerifyContext } from '../verify/finding.ts'
import { checkObservations } from '../verify/observation-check.ts'
import { repairScope } from '../verify/repair.ts'
import { checkTrades, VERIFIED_TRADES } from '../verify/trade-check.ts'
import { optionCommand } from './option-command.ts'
import type { CommandIo } from './command.ts'
import { mustBeLake } from './directories.ts'
import { UsageError } from '../options/usage-error.ts'
import {
  choiceOption,
  dateOption,
  describeOptions,
  type OptionDeclaration,
  optionsOf,
  type ParsedOptions,
} from '../options/options.ts'
import { readStoreOptions, STORE_OPTIONS } from '../storage/store-options.ts'
import { openExistingStore } from './open-store.ts'

/** The number of days that are verified by default. */
const DAYS_DEFAULT = 30

/** Verifies one kind of data, and opens missing windows for the next backfill. */
interface Check {
  readonly kind: string
  readonly unit: string
  scopes(context: VerifyContext): Promise<readonly string[]>
  readonly check: (context: VerifyContext, scope: string) => Promise<ScopeReport>
  /** The sources whose windows are opened. */
  readonly repairs: readonly SourceName[]
}

const CHECKS: readonly Check[] = [
  {
    kind: 'candles',
    unit: 'market-days',
    scopes: (context) => knownSeries(context, null),
    check: checkCandles,
    repairs: ['exchange-candles'],
  },
  {
    kind: 'observations',
    unit: 'station-days',
    scopes: async () => STATIONS.map(({ code }) => code),
    check: checkObservations,
    repairs: ['iem', 'ncei'],
  },
  {
    kind: 'climate',
    unit: 'climate dates',
    scopes: async () => STATIONS.map(({ code }) => code),
    check: checkClimateReports,
    repairs: ['climate-afos'],
  },
]
const KINDS = CHECKS.map(({ kind }) => kind)

const TRADES: Check = {
  ...CHECKS[0]!,
  unit: 'market-days of trades',
  check: checkTrades,
  repairs: [VERIFIED_TRADES],
}

const OPTIONS: readonly OptionDeclaration[] = [
  ...optionsOf('verify', [
    { name: 'store', description: 'verify the relational store and the rows that have moved to the lake' },
    { name: 'trades', description: 'verify the trades of the lake; needs --lake' },
    {
      name: 'only',
      placeholder: '<kind>',
      description: `with --store, verify only one of ${KINDS.join(', ')}; default: all`,
    },
    {
      name: 'from',
      placeholder: '<date>',
      description: `first UTC date (YYYY-MM-DD); default: the first of the ${DAYS_DEFAULT} days up to the last date`,
    },
    { name: 'to', placeholder: '<date>', description: 'last date; default: yesterday' },
    { name: 'repair', description: 'reopen the missing windows for the next backfill over these dates' },
  ]),
  {
    name: 'lake',
    placeholder: '<dir>',
    description:
      'the lake with the trades and with the rows that moved from the store; required if rows have moved',
  },
  ...STORE_OPTIONS,
]

const HELP = `Usage: bookcast verify --store [--only <kind>] [--from <date>] [--to <date>] [--lake <dir>] [--repair] [options]
       bookcast verify --trades --lake <dir> [--from <date>] [--to <date>] [--repair] [options]

Compares the stored data of each day with the data that should exist, and prints what is missing. It checks only data between
the dates, and sends no request to an upstream.

  candles        the volumes of minute, hour and day candles against one another and, for a settled market whose life lies
                 between the dates, against the volume that the exchange states
  observations   the routine reports (METAR) of every station, one an hour
  climate        the final climate report of every station and date, due at 18:00 UTC on the next day

  trades         (--trades) in every minute that has a candle, the volume and the last price of the market's trades; dates count
                 two days after their end. /health tells how many minutes are proven

With --repair, exactly the missing windows are reopened. "bookcast ingest --from <date> --to <date>" over the same dates fetches
them, and nothing that is complete; for trades it needs --lake. The exit code is 1 if something is missing.

${describeOptions(OPTIONS)}
`

export const verifyCommand = optionCommand(OPTIONS, HELP, async (options, io) => {
  const [isStore, isTrades] = [options.has('store'), options.has('trades')]
  if (!isStore && !isTrades)
    throw new UsageError('--store or --trades must be given: it selects what to verify')
  const dates = readDates(options)
  const only = options.get('only')
  const kinds = only === undefined ? KINDS : [choiceOption(only, KINDS)]
  const ofStore = isStore ? CHECKS.filter(({ kind }) => kinds.includes(kind)) : []
  const checks = [...ofStore, ...(isTrades ? [TRADES] : [])]
  const lakeOption = options.get('lake')
  const lake = lakeOption?.text ?? null
  if (isTrades && lake === null) throw new UsageError('--trades needs --lake, the lake that has the trades')
  if (isTrades && !isStore && only !== undefined) throw new UsageError('--only needs --store')
  if (lakeOption !== undefined) await mustBeLake(lakeOption)
  const store = await openExistingStore(readStoreOptions(options))
  try {
    const context: VerifyContext = {
      postgres: store.postgres,
      lake,
      span: { fromMs: Date.parse(dates.from), toMs: Date.parse(dates.to) + MS_PER_DAY },
      nowMs: SYSTEM_CLOCK.nowMs(),
      signal: io.signal,
    }
    const totals = await verifyAll(context, checks, options.has('repair'), io)
    io.stdout.write(summary(totals, dates, options.has('repair')))
    return totals.missing === 0 ? 0 : 1
  } finally {
    await store.close()
  }
})

type Dates = ReturnType<typeof readDates>

function readDates(options: ParsedOptions) {
  const to = dateOption(options.get('to')) ?? addDays(utcDateOf(SYSTEM_CLOCK.nowMs()), -1)
  const from = dateOption(options.get('from')) ?? addDays(to, 1 - DAYS_DEFAULT)
  if (to < from) throw new UsageError(`--from (${from}) must not be after the last date (${to})`)
  return { from, to }
}

interface Totals {
  /** `3 market-days`, … */
  counted: string[]
  missing: number
  /** Findings that name a window. */
  openable: number
  opened: number
}

async function verifyAll(
  context: VerifyContext,
  checks: readonly Check[],
  isRepairing: boolean,
  { stdout, stderr }: Pick<CommandIo, 'stdout' | 'stderr'>,
): Promise<Totals> {
  const work = await Promise.all(checks.map(async (each) => ({ ...each, names: await each.scopes(context) })))
  const totals: Totals = { counted: [], missing: 0, openable: 0, opened: 0 }
  const bar = startBar(stderr, work.flatMap(({ names }) => names).length)
  const lines: string[] = []
  const add = ({ findings, scope }: ScopeReport): void => {
    totals.missing += findings.length
    totals.openable += findings.filter(({ window }) => window !== null).length
    for (const { of, text } of findings) lines.push(`${of} ${text}\n`)
    bar?.increment(1, { title: scope })
    // While a bar is shown, the lines wait until it has stopped.
    if (bar === undefined) stdout.write(lines.splice(0).join(''))
  }
  try {
    for (const { names, unit, check, repairs } of work) {
      let dayCount = 0
      for (const name of names) {
        const report = await countedOr(context, name, check)
        dayCount += report.dayCount
        if (isRepairing) totals.opened += await repairScope(context.postgres, report, repairs)
        add(report)
      }
      totals.counted.push(`${dayCount} ${unit}`)
    }
  } finally {
    bar?.stop()
    stdout.write(lines.join(''))
  }
  return totals
}

/** Runs a check. An unreadable lake file becomes a finding, so that it does not prevent other checks. */
async function countedOr(context: VerifyContext, scope: string, check: Check['check']): Promise<ScopeReport> {
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
  const { missing, openable, opened } = totals
  const counted = `${from} to ${to}: ${totals.counted.join(', ')} counted, `
  if (missing === 0) return `${counted}nothing is missing\n`
  if (!isRepairing)
    return `${counted}${missing} findings${openable === 0 ? '' : `; --repair opens ${openable} windows`}\n`
  return (
    `${counted}${missing} findings, ${opened} windows opened: ` +
    `bookcast ingest --from ${from} --to ${to} fetches them\n`
  )
}
