// The configuration of `bookcast record`, checked before anything starts.

import { exchanges } from '../exchanges/registry.ts'
import {
  RECORDER_OPTIONS,
  readRecording,
  type RecordingConfig,
  seriesOptions,
} from '../recorder/recording-config.ts'
import { choiceOption, type OptionDeclaration, parseOptions } from '../options/options.ts'
import { UsageError } from '../options/usage-error.ts'

const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const

export interface RecordConfig extends RecordingConfig {
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

// oxfmt-ignore
export const RECORD_OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake to record into; required', env: 'BOOKCAST_LAKE' },
  ...RECORDER_OPTIONS,
  ...exchanges().flatMap(({ exchange }) => exchange.sharedOptions),
  { name: 'user-agent', placeholder: '<text>', description: 'how requests name their sender', env: 'BOOKCAST_USER_AGENT', default: 'bookcast' },
  { name: 'log-level', placeholder: '<level>', description: LOG_LEVELS.join(', '), env: 'BOOKCAST_LOG_LEVEL', default: 'info' },
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
  return { ...recording, logLevel: choiceOption(options.demand('log-level'), LOG_LEVELS) }
}
