// The options of `bookcast export`, and helpers that its commands share.

import { realpathSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { LAKE_DATASETS, type LakeDataset } from '../../shared/lake-layout.ts'
import { stationCode } from '../endpoints/record-parameters.ts'
import { formatsOffered, type PlanHead } from '../export/export-plan.ts'
import { DATASETS } from '../export/export-query.ts'
import type { ExportTarget } from '../export/export-target.ts'
import { openExportTarget } from '../export/open-target.ts'
import { PartThreads } from '../export/part-threads.ts'
import { PlaceError } from '../export/place-error.ts'
import {
  choiceOption,
  dateOption,
  integerOption,
  type OptionDeclaration,
  type OptionText,
  type ParsedOptions,
} from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'
import { STORE_OPTIONS } from '../storage/store-options.ts'
import { readPlace, S3_OPTIONS } from '../sync/sync-options.ts'
import { parsePlace } from '../sync/sync-place.ts'
import { mustBeLake } from './directories.ts'

/** The maximum number of parts that one process makes at once. */
const CONCURRENCY_MAX = 64

function parameter(name: string, placeholder: string, description: string): OptionDeclaration {
  const env = `BOOKCAST_EXPORT_${name.toUpperCase()}`
  return { name, placeholder, description, env }
}

const LAKE = { name: 'lake', placeholder: '<dir>', description: 'the lake; required', env: 'BOOKCAST_LAKE' }

/** The options for access to the target. */
export const TARGET_OPTIONS: readonly OptionDeclaration[] = [
  ...S3_OPTIONS,
  { name: 'region', placeholder: '<name>', description: "the bucket's region", env: 'AWS_REGION' },
]

const CONCURRENCY: OptionDeclaration = {
  name: 'concurrency',
  placeholder: '<n>',
  description: 'parts at once. Default: one for each processor (lob), 1 (others)',
  env: 'BOOKCAST_EXPORT_CONCURRENCY',
}

/** Options that are parameters of the endpoints. */
const PARAMETERS: readonly OptionDeclaration[] = [
  parameter('source', '<exchange>', 'lob, trades: the exchange, as in a request'),
  parameter('interval', '<n>', 'lob: seconds between snapshots; candles: minutes of a candle'),
  parameter('levels', '<n>', 'lob: book levels per side'),
  parameter('nulls', '<true|false>', 'lob: true: null for a missing price, spread or mid'),
  parameter('aggregate', '<minutes>', 'candles: aggregate to this many minutes'),
  parameter('type', '<type>', 'observations: only METAR or only SPECI'),
  parameter('units', '<system>', 'observations: raw, metric or imperial'),
  parameter('tz', '<zone>', 'candles, observations: zone of the time labels. Default: UTC'),
  parameter('columns', '<a,b>', 'columns in the order wanted. Default: all'),
]

export const PLAN_OPTIONS: readonly OptionDeclaration[] = [
  LAKE,
  { ...parameter('dataset', '<name>', LAKE_DATASETS.join(', ')), default: LAKE_DATASETS[0] },
  parameter('series', '<a,b>', 'lob, trades, candles: series. Default: all that the lake has'),
  parameter('station', '<a,b>', 'observations: stations. Default: all that the lake has'),
  parameter('from', '<date>', 'first UTC date; required'),
  parameter('to', '<date>', 'last UTC date; required'),
  ...PARAMETERS,
  {
    ...parameter('format', '<name>', `${formatsOffered().join(', ')} (compressed by gzip: ndjson)`),
    default: formatsOffered()[0]!,
  },
  parameter('out', '<place>', 's3://bucket/prefix or a directory; required'),
  CONCURRENCY,
  ...STORE_OPTIONS,
  ...TARGET_OPTIONS,
]

export const RUN_OPTIONS: readonly OptionDeclaration[] = [LAKE, CONCURRENCY, ...TARGET_OPTIONS]

export const PART_OPTIONS: readonly OptionDeclaration[] = [
  LAKE,
  parameter('index', '<n>', 'index of the part, from 0; required'),
  ...TARGET_OPTIONS,
]

/** The options of the commands that use the queue. */
export const QUEUE_OPTIONS: readonly OptionDeclaration[] = [STORE_OPTIONS[0]]

/** The settings of `export plan`. @throws {UsageError} */
export function readPlanSettings(options: ParsedOptions) {
  const dataset = choiceOption(options.demand('dataset'), LAKE_DATASETS)
  const { scopeName, parameters: names } = DATASETS[dataset]
  const own = new Set<string>([scopeName, ...names])
  const optional = ['series', 'station', ...PARAMETERS.map(({ name }) => name)]
  const foreign = optional
    .map((name) => options.get(name))
    .find((option, at) => option !== undefined && !own.has(optional[at]!))
  if (foreign !== undefined)
    throw new UsageError(`${foreign.origin} is not an option of --dataset ${dataset}`)
  const format = choiceOption(options.demand('format'), formatsOffered())
  const texts = names.flatMap((name) => {
    const text = options.get(name)?.text
    return text === undefined ? [] : [[name, text] as const]
  })
  const range = { from: dateOption(options.demand('from'))!, to: dateOption(options.demand('to'))! }
  if (range.to < range.from)
    throw new UsageError(`--to must not be before --from; ${range.to} is before ${range.from}`)
  return {
    dataset,
    scopes: readScopes(options.get(scopeName), dataset),
    range,
    parameters: { ...Object.fromEntries(texts), format },
    target: options.demand('out'),
  }
}

/** The series or stations of the option, without repetitions; null for all. */
function readScopes(option: OptionText | undefined, dataset: LakeDataset): readonly string[] | null {
  if (option === undefined) return null
  const names = option.text.split(',').map((name) => name.trim())
  return [...new Set(dataset === 'observations' ? names.map(stationCode) : names)]
}

/**
 * Opens the target of an export.
 * @param lake the exported lake, if the command writes parts
 * @throws {UsageError} also if the target is the lake, or a directory inside it
 */
export function openTarget(place: OptionText, options: ParsedOptions, lake?: string): ExportTarget {
  if (lake !== undefined && parsePlace(place.text)?.kind === 'directory') {
    const below = relative(realPath(lake), realPath(place.text))
    if (!isAbsolute(below) && below.split(sep)[0] !== '..')
      throw new UsageError(
        `${place.origin} must not be the lake or lie in it: engines would read the files of both`,
      )
  }
  return openExportTarget(place.text, { ...readPlace(place, options), region: options.get('region')?.text })
}

/** The absolute path; symbolic links are resolved in the part of it that exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const whole = resolve(path)
    return dirname(whole) === whole ? whole : join(realPath(dirname(whole)), basename(whole))
  }
}

/** Opens the target, calls `use` and closes it. Errors of the target are described for the user. */
export async function withTarget<Value>(
  place: OptionText,
  options: ParsedOptions,
  lake: string | undefined,
  use: (target: ExportTarget) => Promise<Value>,
): Promise<Value> {
  const target = openTarget(place, options, lake)
  try {
    return await use(target)
  } catch (error) {
    const sentence = error instanceof PlaceError ? undefined : target.describe(error)
    throw sentence === undefined ? error : new PlaceError(sentence, error)
  } finally {
    target.close()
  }
}

export function targetOf({ target }: PlanHead): OptionText {
  return { text: target, origin: "the plan's --out" }
}

/** Starts threads on the lake of the options, calls `use` and closes them. */
export async function withThreads<Value>(
  options: ParsedOptions,
  threads: number,
  use: (threads: PartThreads) => Promise<Value>,
): Promise<Value> {
  const lake = options.demand('lake')
  await mustBeLake(lake)
  const opened = new PartThreads({ lake: lake.text, threads })
  try {
    return await use(opened)
  } finally {
    await opened.close()
  }
}

/** @throws {UsageError} */
export function readConcurrency(options: ParsedOptions, dataset: LakeDataset = 'lob'): number {
  const given = options.get('concurrency')
  if (given !== undefined) return integerOption(given, 1, CONCURRENCY_MAX)
  // Each part of records runs its own DuckDB, which uses two processors and about 100 MB.
  return dataset === 'lob' ? availableParallelism() : 1
}
