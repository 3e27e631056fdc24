// The configuration of the serving process, from command-line options and environment variables, checked and frozen
// before anything starts. The only reader of the environment.

import {
  CONFIGURED_TIMEOUT_MS_MAX,
  SHUTDOWN_TIMEOUT_MS_DEFAULT,
  STALL_TIMEOUT_MS_DEFAULT,
} from '../shared/limits.ts'
import { UsageError } from './commands/command.ts'
import {
  choiceOption,
  integerOption,
  type OptionDeclaration,
  type OptionText,
  type ParsedOptions,
  parseOptions,
} from './commands/options.ts'

const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const

export interface ServeConfig {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  /** The lake's root directory. */
  readonly lake: string
  readonly stallTimeoutMs: number
  readonly shutdownTimeoutMs: number
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

export const SERVE_OPTIONS = [
  {
    name: 'lake',
    placeholder: '<dir>',
    description: 'the lake to serve; required',
    env: 'BOOKCAST_LAKE',
  },
  {
    name: 'port',
    placeholder: '<n>',
    description: 'TCP port, 0 for any free one',
    env: 'BOOKCAST_PORT',
    default: '8080',
  },
  {
    name: 'host',
    placeholder: '<addr>',
    description: 'address to listen on',
    env: 'BOOKCAST_HOST',
    default: '127.0.0.1',
  },
  {
    name: 'stall-timeout-ms',
    placeholder: '<ms>',
    description: 'cut off a client that takes no byte for so long',
    env: 'BOOKCAST_STALL_TIMEOUT_MS',
    default: String(STALL_TIMEOUT_MS_DEFAULT),
  },
  {
    name: 'shutdown-timeout-ms',
    placeholder: '<ms>',
    description: 'time running requests have to finish after SIGTERM',
    env: 'BOOKCAST_SHUTDOWN_TIMEOUT_MS',
    default: String(SHUTDOWN_TIMEOUT_MS_DEFAULT),
  },
  {
    name: 'log-level',
    placeholder: '<level>',
    description: LOG_LEVELS.join(', '),
    env: 'BOOKCAST_LOG_LEVEL',
    default: 'info',
  },
] as const satisfies readonly OptionDeclaration[]

/** The environment of this process. */
export const processEnvironment: NodeJS.ProcessEnv = process.env

type OptionName = (typeof SERVE_OPTIONS)[number]['name']

function demand(options: ParsedOptions, name: OptionName): OptionText {
  const option = options.get(name)
  const env = SERVE_OPTIONS.find((declaration) => declaration.name === name)?.env
  if (option === undefined || option.text === '') throw new UsageError(`--${name} (or ${env}) must be given`)
  return option
}

/**
 * The configuration, or `help` when that was asked for.
 * @throws {UsageError} that names the wrong option
 */
export function readServeConfig(args: readonly string[], env: NodeJS.ProcessEnv): ServeConfig | 'help' {
  const options = parseOptions(args, env, SERVE_OPTIONS)
  if (options.help) return 'help'
  return Object.freeze({
    lake: demand(options, 'lake').text,
    host: demand(options, 'host').text,
    port: integerOption(demand(options, 'port'), 0, 65_535),
    stallTimeoutMs: integerOption(demand(options, 'stall-timeout-ms'), 1, CONFIGURED_TIMEOUT_MS_MAX),
    shutdownTimeoutMs: integerOption(demand(options, 'shutdown-timeout-ms'), 0, CONFIGURED_TIMEOUT_MS_MAX),
    logLevel: choiceOption(demand(options, 'log-level'), LOG_LEVELS),
  })
}
