// How much a process logs: one option for every command that has a log.

import { choiceOption, type OptionDeclaration, type ParsedOptions } from './options.ts'

const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export const LOG_LEVEL_OPTION = {
  name: 'log-level',
  placeholder: '<level>',
  description: LOG_LEVELS.join(', '),
  default: 'info',
} as const satisfies OptionDeclaration

/** @throws {UsageError} */
export function readLogLevel(options: ParsedOptions): LogLevel {
  return choiceOption(options.demand('log-level'), LOG_LEVELS)
}
