// The configuration of `bookcast record`, checked before anything starts.

import { exchanges } from '../exchanges/registry.ts'
import { USER_AGENT_OPTION } from '../ingest/ingest-config.ts'
import { LOG_LEVEL_OPTION, type LogLevel, readLogLevel } from '../options/log-level.ts'
import {
  RECORDER_OPTIONS,
  readRecording,
  type RecordingConfig,
  seriesOptions,
} from '../recorder/recording-config.ts'
import { type OptionDeclaration, parseOptions } from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'

export interface RecordConfig extends RecordingConfig {
  readonly logLevel: LogLevel
}

// oxfmt-ignore
export const RECORD_OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake to record into; required' },
  ...RECORDER_OPTIONS,
  ...exchanges().flatMap(({ exchange }) => exchange.sharedOptions),
  USER_AGENT_OPTION,
  LOG_LEVEL_OPTION,
]

/** @throws {UsageError} that names the wrong option or variable, and never repeats a secret */
export function readRecordConfig(args: readonly string[], env: NodeJS.ProcessEnv): RecordConfig | 'help' {
  const options = parseOptions(args, env, RECORD_OPTIONS)
  if (options.help) return 'help'
  const recording = readRecording(options, env, options.demand('lake').text)
  if (recording === null) {
    const names = seriesOptions().map(({ name }) => `--${name}`)
    throw new UsageError(`${names.join(' or ')} must name what to record`)
  }
  return { ...recording, logLevel: readLogLevel(options) }
}
