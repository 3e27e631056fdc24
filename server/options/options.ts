// Command-line options. Each may also be set by an environment variable or, for some commands, in a configuration file; the
// command line takes precedence, then the environment. One declaration defines the parser, the help text and the name in error
// messages.

import { parseArgs, type ParseArgsConfig } from 'node:util'
import { messageOf } from '../../shared/error-message.ts'
import { utcDateStartMs } from '../../shared/utc-date.ts'
import { UsageError } from './usage-error.ts'
import { closest } from './closest.ts'

const HELP_COLUMN = 30

export interface OptionDeclaration {
  /** Without its dashes: `stall-timeout-ms`. */
  readonly name: string
  /** Its earlier name, which the command line still accepts. */
  readonly formerName?: string
  /** The placeholder of the value in the help text: `<ms>`. Without it the option is a flag. */
  readonly placeholder?: string
  readonly description: string
  /** Its environment variable. Default: `BOOKCAST_STALL_TIMEOUT_MS`. */
  readonly env?: string
  readonly default?: string
  /** A secret is not accepted on the command line, which other users of the machine can read. */
  readonly isSecret?: true
  /** Not accepted in a configuration file. */
  readonly isNotInFile?: true
}

/** The text of an option and its origin for error messages: `--port` or `BOOKCAST_PORT`. */
export interface OptionText {
  readonly text: string
  readonly origin: string
  /** The value in the configuration file, for options that are more than a text there. */
  readonly json?: unknown
}

/** The content of a configuration file, by option name. */
export interface OptionFile {
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
}

export interface ParsedOptions {
  readonly help: boolean
  /** The arguments that are not options. */
  readonly files: readonly string[]
  /** Whether a flag is set on the command line, by its variable or in the file. @throws {UsageError} */
  has(name: string): boolean
  /** The option's text, or its default; `undefined` if there is neither. */
  get(name: string): OptionText | undefined
  /** The same for a required option. @throws {UsageError} that names it if it is not set, or empty */
  demand(name: string): OptionText
}

/** @throws {UsageError} for unknown options, missing values and, unless the command takes files, other arguments */
export function parseOptions(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  declarations: readonly OptionDeclaration[],
  { file, takesFiles = false }: { readonly file?: OptionFile; readonly takesFiles?: boolean } = {},
): ParsedOptions {
  const onCommandLine = declarations.filter((declaration) => declaration.isSecret !== true)
  const options = Object.fromEntries(
    onCommandLine.flatMap(({ name, formerName = name, placeholder }) =>
      [name, formerName].map((each) => [
        each,
        { type: placeholder === undefined ? ('boolean' as const) : ('string' as const) },
      ]),
    ),
  )
  const known = { ...options, help: { type: 'boolean' as const, short: 'h' } }
  const config = { args: [...args], options: known, allowPositionals: takesFiles }
  const { values, positionals } = parseArguments(config, () => meantOption(args, known, declarations))
  const parsed: Readonly<Record<string, unknown>> = values
  if (file !== undefined) refuseUnknownNames(file, declarations)
  const find = (name: string): OptionDeclaration => {
    const declaration = declarations.find((candidate) => candidate.name === name)
    if (declaration === undefined) throw new Error(`option ${name} is not declared`)
    return declaration
  }
  const get = (name: string): OptionText | undefined => {
    const declaration = find(name)
    for (const each of [name, declaration.formerName ?? name]) {
      const given = parsed[each]
      if (typeof given === 'string') return { text: given, origin: `--${each}` }
    }
    // An empty variable counts as not set, because container files often pass one through.
    const variable = variableOf(declaration)
    const inherited = env[variable]
    if (inherited !== undefined && inherited !== '') return { text: inherited, origin: variable }
    return fileText(file, name) ?? defaultText(declaration)
  }
  return {
    help: parsed['help'] === true,
    files: positionals,
    get,
    demand(name) {
      const option = get(name)
      if (option !== undefined && option.text.trim() !== '') return option
      throw new UsageError(`--${name} (or ${variableOf(find(name))}) must be given`)
    },
    has: (name) => parsed[name] === true || flagOption(get(name)),
  }
}

function variableOf({ name, env = variableName(name) }: OptionDeclaration): string {
  return env
}

function variableName(...words: readonly string[]): string {
  return ['bookcast', ...words].join('_').replaceAll('-', '_').toUpperCase()
}

/** Options whose variables include the command's name: `BOOKCAST_PRUNE_BEFORE`. */
export function optionsOf(
  command: string,
  declarations: readonly Omit<OptionDeclaration, 'env'>[],
): OptionDeclaration[] {
  return declarations.map((each) => ({ ...each, env: variableName(command, each.name) }))
}

function defaultText({ name, default: text }: OptionDeclaration): OptionText | undefined {
  return text === undefined ? undefined : { text, origin: `--${name}` }
}

function fileText(file: OptionFile | undefined, name: string): OptionText | undefined {
  const json = file?.values[name]
  if (file === undefined || json === undefined) return undefined
  const origin = `${file.path}: ${JSON.stringify(name)}`
  if (typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean')
    return { text: String(json), origin }
  if (!Array.isArray(json)) throw new UsageError(`${origin} must be a text, a number or a list`)
  return { text: json.join(','), origin, json }
}

function refuseUnknownNames(file: OptionFile, declarations: readonly OptionDeclaration[]): void {
  const known = declarations.filter((declaration) => declaration.isNotInFile !== true)
  for (const name of Object.keys(file.values)) {
    if (known.some((declaration) => declaration.name === name)) continue
    const names = known.map((declaration) => declaration.name).join(', ')
    throw new UsageError(`${file.path}: there is no option ${JSON.stringify(name)}; the options are ${names}`)
  }
}

/** The end of a message: how to set a secret, or the option whose name is close to a misspelt one. */
function meantOption(
  args: readonly string[],
  options: Readonly<Record<string, unknown>>,
  declarations: readonly OptionDeclaration[],
): string {
  const names = args.filter((arg) => arg.startsWith('--')).map((arg) => arg.slice(2).split('=', 1)[0] ?? '')
  const unknown = names.find((name) => !(name in options))
  const secret = declarations.find(({ name }) => name === unknown)
  if (secret !== undefined)
    return `\nOther users can read a secret on a command line; set ${variableOf(secret)}.`
  const meant = unknown === undefined ? undefined : closest(unknown, Object.keys(options))
  return meant === undefined ? '' : `\nDid you mean --${meant}?`
}

/** The result of Node's parser. @throws {UsageError} with its message, followed by `hint()` */
function parseArguments<Config extends ParseArgsConfig>(
  config: Config,
  hint: () => string,
): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config)
  } catch (error) {
    throw new UsageError(`${messageOf(error)}${hint()}`)
  }
}

/** The value of a flag in a variable or a file; false if it is not set. @throws {UsageError} that names the option */
function flagOption(option: OptionText | undefined): boolean {
  const text = option?.text.toLowerCase()
  if (text === undefined || ['0', 'false', 'no', 'off'].includes(text)) return false
  if (['1', 'true', 'yes', 'on'].includes(text)) return true
  throw new UsageError(`${option?.origin} takes 1, true, 0 or false, not ${JSON.stringify(option?.text)}`)
}

/** @throws {UsageError} that names the option if it is not a whole number within the bounds */
export function integerOption(option: OptionText, minimum: number, maximum: number): number {
  const value = /^\d+$/.test(option.text) ? Number(option.text) : Number.NaN
  if (value >= minimum && value <= maximum) return value
  throw new UsageError(
    `${option.origin} must be a whole number from ${minimum} to ${maximum}, not ${JSON.stringify(option.text)}`,
  )
}

/** The date of an option, if it is set. @throws {UsageError} that names the option if it is not a date */
export function dateOption(option: OptionText | undefined): string | undefined {
  if (option === undefined || utcDateStartMs(option.text) !== undefined) return option?.text
  throw new UsageError(`${option.origin} must be a date (YYYY-MM-DD), not ${JSON.stringify(option.text)}`)
}

/** @throws {UsageError} that names the option if it is not one of the choices */
export function choiceOption<T extends string>(option: OptionText, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === option.text)
  if (choice !== undefined) return choice
  throw new UsageError(
    `${option.origin} must be one of ${choices.join(', ')}, not ${JSON.stringify(option.text)}`,
  )
}

/** @throws {UsageError} that names the option if it is not `<host>:<port>`; `also` names other accepted values */
export function addressOption(
  option: OptionText,
  also = '',
): { readonly host: string; readonly port: number } {
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:]+)):(?<port>\d{1,5})$/.exec(option.text)?.groups
  const port = Number(match?.['port'])
  const host = match?.['ipv6'] ?? match?.['host']
  if (host !== undefined && port <= 65_535) return { host, port }
  throw new UsageError(`${option.origin} must be ${also}<host>:<port>, not ${JSON.stringify(option.text)}`)
}

/** @throws {UsageError} that names the option if it is not a number above 0, at most the maximum */
export function positiveOption(option: OptionText, maximum: number): number {
  const value = /^\d+(?:\.\d+)?$/.test(option.text) ? Number(option.text) : Number.NaN
  if (value > 0 && value <= maximum) return value
  throw new UsageError(
    `${option.origin} must be a number above 0, at most ${maximum}, not ${JSON.stringify(option.text)}`,
  )
}

/** @throws {UsageError} that names the option if it is not a URL with one of the protocols (`https:`) */
export function urlOption({ text, origin }: OptionText, protocols: readonly string[]): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && protocols.includes(url.protocol)) return text
  throw new UsageError(`${origin} takes a ${protocols.join(' or ')} address, not ${JSON.stringify(text)}`)
}

/** The parts of a comma-separated option; empty for an empty one. */
export function listOption(option: OptionText | undefined): string[] {
  if (option === undefined) return []
  return option.text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** The options section of a help text. */
export function describeOptions(declarations: readonly OptionDeclaration[]): string {
  const hasFile = declarations.some(({ name }) => name === 'config')
  const indent = ' '.repeat(HELP_COLUMN)
  const lines = declarations.map((option) => {
    const value = option.placeholder === undefined ? '' : ` ${option.placeholder}`
    const variable = variableOf(option)
    const head =
      option.isSecret === true ? `  ${variable}=${option.placeholder}` : `  --${option.name}${value}`
    const fallback = option.default === undefined ? '' : ` (default ${option.default})`
    const secretPlace = `only in the environment${hasFile ? ` or, as ${option.name}, in the file` : ''}`
    const alternative = option.isSecret === true ? secretPlace : `also ${variable}`
    const first = head.length < HELP_COLUMN ? head.padEnd(HELP_COLUMN) : `${head}\n${indent}`
    return `${first}${option.description}${fallback}\n${indent}${alternative}\n`
  })
  return `Options:\n${lines.join('')}${'  -h, --help'.padEnd(HELP_COLUMN)}show this help`
}
