// Command-line options, each of which may also stand in an environment variable; the command line wins. One declaration
// gives the parser, the help text and the name that an error mentions.

import { parseArgs } from 'node:util'
import { UsageError } from './command.ts'

export interface OptionDeclaration {
  /** Without its dashes: `stall-timeout-ms`. */
  readonly name: string
  /** What stands for the value in the help text: `<ms>`. */
  readonly placeholder: string
  readonly description: string
  readonly env: string
  readonly default?: string
}

/** The text of an option and where it came from, for error messages: `--port` or `BOOKCAST_PORT`. */
export interface OptionText {
  readonly text: string
  readonly origin: string
}

export interface ParsedOptions {
  readonly help: boolean
  /** The option's text; its default when neither argument nor variable is given; else `undefined`. */
  get(name: string): OptionText | undefined
}

/** @throws {UsageError} for unknown options, missing values and arguments that are no options */
export function parseOptions(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  declarations: readonly OptionDeclaration[],
): ParsedOptions {
  const options = Object.fromEntries(declarations.map(({ name }) => [name, { type: 'string' as const }]))
  const parsed = parseOrRefuse(args, { ...options, help: { type: 'boolean', short: 'h' } })
  return {
    help: parsed['help'] === true,
    get(name) {
      const declaration = declarations.find((candidate) => candidate.name === name)
      if (declaration === undefined) throw new Error(`option ${name} is not declared`)
      const given = parsed[name]
      if (typeof given === 'string') return { text: given, origin: `--${name}` }
      // An empty variable counts as not set, as container files often pass one through.
      const inherited = env[declaration.env]
      if (inherited !== undefined && inherited !== '') return { text: inherited, origin: declaration.env }
      return declaration.default === undefined
        ? undefined
        : { text: declaration.default, origin: `--${name}` }
    },
  }
}

function parseOrRefuse(
  args: readonly string[],
  options: Record<string, { type: 'string' | 'boolean'; short?: string }>,
): Record<string, unknown> {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** @throws {UsageError} naming the option when it is not a whole number within the bounds */
export function integerOption(option: OptionText, minimum: number, maximum: number): number {
  const value = /^\d+$/.test(option.text) ? Number(option.text) : Number.NaN
  if (value >= minimum && value <= maximum) return value
  throw new UsageError(
    `${option.origin} must be a whole number from ${minimum} to ${maximum}, not ${JSON.stringify(option.text)}`,
  )
}

/** @throws {UsageError} naming the option when it is none of the choices */
export function choiceOption<T extends string>(option: OptionText, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === option.text)
  if (choice !== undefined) return choice
  throw new UsageError(
    `${option.origin} must be one of ${choices.join(', ')}, not ${JSON.stringify(option.text)}`,
  )
}

/** The option lines of a help text. */
export function describeOptions(declarations: readonly OptionDeclaration[]): string {
  return declarations
    .map((option) => {
      const head = `  --${option.name} ${option.placeholder}`.padEnd(30)
      const fallback = option.default === undefined ? '' : ` (default ${option.default})`
      return `${head}${option.description}${fallback}\n${' '.repeat(30)}also ${option.env}`
    })
    .join('\n')
}
