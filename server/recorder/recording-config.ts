// The recording settings, checked before anything starts: the recorder's own options and those of every exchange.

import { join } from 'node:path'
import { isSeriesName } from '../../shared/series-name.ts'
import { type ExchangeRecordings, exchanges } from '../exchanges/registry.ts'
import { listOption } from '../options/options.ts'
import type { OptionDeclaration, OptionText, ParsedOptions } from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'

/** What to record, from which addresses, and into which directories. */
export interface RecordingConfig extends ExchangeRecordings {
  readonly lake: string
  /** The recorder's own files. A crash must not lose the log, so it belongs on a disk. */
  readonly workDirectory: string
  readonly userAgent: string
}

/** The options that name the recorded series, one for each exchange. */
export function seriesOptions(): OptionDeclaration[] {
  return exchanges().map(({ exchange }) => exchange.seriesOption)
}

/** The recorder's own options. The User-Agent, and addresses that collectors also request, are options of the collectors. */
// oxfmt-ignore
export const RECORDER_OPTIONS: readonly OptionDeclaration[] = [
  ...seriesOptions(),
  { name: 'work', placeholder: '<dir>', description: "directory of the recorder's log and work files; default: .recorder in the lake", env: 'BOOKCAST_RECORDER_DIR' },
  ...exchanges().flatMap(({ exchange }) => exchange.addressOptions),
]

export const RECORD_SECRETS_HELP = exchanges()
  .flatMap(({ exchange }) => exchange.secretsHelp ?? [])
  .join('\n\n')

/**
 * The recording settings of the options and variables; null if they name no series.
 * @throws {UsageError} that names the wrong option or variable, and never repeats a secret
 */
export function readRecording(
  options: ParsedOptions,
  env: NodeJS.ProcessEnv,
  lake: string,
): RecordingConfig | null {
  const recordings = exchanges().map(({ source, exchange }) => {
    const series = seriesOf(options.get(exchange.seriesOption.name))
    return [source, series, exchange] as const
  })
  if (recordings.every(([, series]) => series.length === 0)) return null
  return {
    lake,
    workDirectory: textOf(options, 'work') ?? join(lake, '.recorder'),
    userAgent: options.demand('user-agent').text,
    ...Object.fromEntries(
      recordings.map(([source, series, exchange]) => [
        source,
        series.length === 0 ? undefined : exchange.readRecording(series, options, env),
      ]),
    ),
  }
}

/** The configuration without secrets, for display. */
export function describeRecording(config: RecordingConfig): object {
  const recordings = exchanges().flatMap(({ source, exchange }) => {
    const recording = config[source]
    return recording === undefined ? [] : [[source, exchange.describe(recording)] as const]
  })
  return { ...config, ...Object.fromEntries(recordings) }
}

function textOf(options: ParsedOptions, name: string): string | undefined {
  const text = options.get(name)?.text
  return text === '' ? undefined : text
}

function seriesOf(option: OptionText | undefined): string[] {
  const names = listOption(option)
  const wrong = names.find((series) => !isSeriesName(series))
  if (wrong !== undefined) {
    throw new UsageError(
      `${option!.origin} takes series names separated by commas, not ${JSON.stringify(wrong)}`,
    )
  }
  return [...new Set(names)]
}
