// Parses the raw text of a request into checked, typed values. ajv validates them against the declarations, which are compiled
// with an endpoint's first request. Nothing is clamped, ignored or guessed. Unknown, repeated, empty and malformed parameters
// are refused, all in one answer, which names each parameter and what it accepts.

import assert from 'node:assert/strict'
import { Ajv, type ValidateFunction } from 'ajv'
import { ApiError, type ParameterError } from '../../shared/errors.ts'
import { isTimeZone } from '../../shared/time-zone.ts'
import { utcDateStartMs } from '../../shared/utc-date.ts'
import { acceptedValues, type Parameter, type ParameterValues } from './parameters.ts'
import { splitQuery } from './query-string.ts'
import { instantMs } from './time-range.ts'

/** The limits on entries of `errors[]` in one answer, and on characters of the client's text that an answer repeats. */
export const ANSWER_ERRORS_MAX = 20
const ANSWER_QUOTE_CHARACTERS_MAX = 80

/** The parameters of a request after each value was checked, for rules about several of them. */
export interface CheckedParameters<P extends readonly Parameter[]> {
  /** Whether the request has the parameter, valid or not. */
  readonly has: (name: P[number]['name']) => boolean
  /** The valid values and the defaults. */
  readonly values: Partial<ParameterValues<P>>
}

export type ReportError = (parameter: string, detail: string) => void

/** Reports violations that involve several parameters. It also runs when single values are wrong. */
export type ParameterRule<P extends readonly Parameter[]> = (
  checked: CheckedParameters<P>,
  report: ReportError,
) => void

const ajv = new Ajv({
  allErrors: true,
  useDefaults: true,
  strict: true,
  allowUnionTypes: false,
  // The declarations are constants. Validating them against the meta-schema takes ten times as long as compiling them.
  validateSchema: false,
  // Optimizing the generated code takes as long as generating it, and makes it no faster.
  code: { optimize: false },
})
ajv.addFormat('date', (text: string) => utcDateStartMs(text) !== undefined)
ajv.addFormat('instant', (text: string) => instantMs(text) !== undefined)
ajv.addFormat('time-zone', (text: string) => text === 'station' || isTimeZone(text))

/** A client's text as an answer may repeat it: quoted and truncated. */
export function quote(text: string): string {
  const cut =
    text.length > ANSWER_QUOTE_CHARACTERS_MAX ? `${text.slice(0, ANSWER_QUOTE_CHARACTERS_MAX)}…` : text
  return JSON.stringify(cut)
}

/** Only plain decimal digits are a number: no sign, fraction, exponent, blank or hexadecimal. */
function valueOfText(text: string, schema: Parameter['schema']): unknown {
  if (schema.type === 'integer') return /^\d+$/.test(text) ? Number(text) : text
  if (schema.type === 'array') return text.split(',')
  return text
}

function compileDeclarations<T>(parameters: readonly Parameter[]): ValidateFunction<T> {
  const required = parameters.filter((p) => p.required === true || p.in === 'path').map((p) => p.name)
  const properties = Object.fromEntries(parameters.map((p) => [p.name, p.schema]))
  return ajv.compile<T>({ type: 'object', properties, required, additionalProperties: false })
}

export class ParameterParser<const P extends readonly Parameter[]> {
  readonly #declared: ReadonlyMap<string, Parameter>
  readonly #parameters: P
  #compiled: ValidateFunction<ParameterValues<P>> | undefined
  readonly #rule: ParameterRule<P> | undefined
  /** The names of the query parameters, as an answer lists them. */
  readonly #offered: string
  /** Whether there are only path parameters that accept any text, so that no value can be wrong. */
  readonly #isAnyTextInPath: boolean

  constructor(parameters: P, rule?: ParameterRule<P>) {
    this.#parameters = parameters
    this.#declared = new Map(parameters.map((parameter) => [parameter.name, parameter]))
    this.#rule = rule
    const known = parameters.filter((p) => p.in !== 'path').map((p) => p.name)
    this.#offered = known.length === 0 ? 'none' : known.join(', ')
    this.#isAnyTextInPath =
      rule === undefined &&
      parameters.every(
        ({ in: place, schema }) =>
          place === 'path' &&
          schema.type === 'string' &&
          schema.enum === undefined &&
          schema.format === undefined,
      )
  }

  get #validate(): ValidateFunction<ParameterValues<P>> {
    return (this.#compiled ??= compileDeclarations(this.#parameters))
  }

  /** The same, but values may be missing. */
  #validatePart(values: object): values is Partial<ParameterValues<P>> {
    const validate = this.#validate
    return validate(values) || (validate.errors ?? []).every(({ keyword }) => keyword === 'required')
  }

  /**
   * The values of a request, defaults filled in.
   * @param rawQuery the text after the `?` of the request target, as sent
   * @param pathValues the decoded path parameters
   * @throws {ApiError} `invalid_parameter` (400), or `unknown_format` (406) if only the format is wrong
   */
  parse(rawQuery: string, pathValues: Readonly<Record<string, string>>): ParameterValues<P> {
    if (rawQuery === '' && this.#isAnyTextInPath) {
      const given: object = pathValues
      return given as ParameterValues<P>
    }
    const errors = new Map<string, string>()
    const report = (parameter: string, detail: string): void => {
      if (!errors.has(parameter)) errors.set(parameter, detail)
    }
    const texts = this.#readTexts(rawQuery, pathValues, report)
    const values = this.#readValues(texts, errors, report)
    const isFormatUnknown = errors.has('format') && (texts.get('format') ?? '') !== ''
    assert(this.#validatePart(values))
    this.#rule?.({ has: (name) => texts.has(name), values }, report)
    if (errors.size > 0) throw refusal(errors, isFormatUnknown)
    assert(this.#validate(values))
    return values
  }

  /** The text of each known parameter; everything else in the request is reported. */
  #readTexts(
    rawQuery: string,
    pathValues: Readonly<Record<string, string>>,
    report: ReportError,
  ): Map<string, string> {
    const { entries, malformed } = splitQuery(rawQuery)
    const texts = new Map(Object.entries(pathValues))
    const isOtherFormat = entries.some(({ name, value }) => name === 'format' && value !== 'json')
    for (const piece of malformed)
      report(piece.split('=', 1)[0] ?? '', `${quote(piece)} is not valid percent-encoded UTF-8.`)
    for (const { name, value } of entries) {
      const declared = this.#declared.get(name)
      if (isOtherFormat && declared?.isForJsonAlone === true) continue
      if (declared === undefined || declared.in === 'path') report(name, this.#unknownName(name))
      else if (texts.has(name)) {
        texts.set(name, '')
        report(name, `${name} must be given once.`)
      } else texts.set(name, value)
    }
    return texts
  }

  #unknownName(name: string): string {
    const why = name === 'version' ? ', which answers from the newest data' : ''
    return `${quote(name)} is not a parameter of this path${why}; its parameters are: ${this.#offered}.`
  }

  /** The values that satisfy their declarations; the others are reported and left out. */
  #readValues(
    texts: ReadonlyMap<string, string>,
    errors: ReadonlyMap<string, string>,
    report: ReportError,
  ): object {
    const values: Record<string, unknown> = {}
    for (const [name, text] of texts) {
      const declared = this.#declared.get(name)
      if (declared === undefined) continue
      if (text === '') report(name, `${name} must be ${acceptedValues(declared.schema)}; it is empty.`)
      else values[name] = valueOfText(text, declared.schema)
    }
    if (!this.#validate(values)) this.#reportViolations(texts, report)
    for (const name of errors.keys()) delete values[name]
    return values
  }

  #reportViolations(texts: ReadonlyMap<string, string>, report: ReportError): void {
    for (const violation of this.#validate.errors ?? []) {
      const missing: unknown = violation.params['missingProperty']
      const name = typeof missing === 'string' ? missing : (violation.instancePath.split('/')[1] ?? '')
      const declared = this.#declared.get(name)
      const accepted = declared === undefined ? 'left out' : acceptedValues(declared.schema)
      const given = texts.get(name)
      const detail =
        given === undefined
          ? `is missing; it must be ${accepted}`
          : `must be ${accepted}, not ${quote(given)}`
      report(name, `${name} ${detail}.`)
    }
  }
}

function refusal(errors: ReadonlyMap<string, string>, isFormatUnknown: boolean): ApiError {
  const listed: ParameterError[] = [...errors]
    .slice(0, ANSWER_ERRORS_MAX)
    .map(([parameter, detail]) => ({ parameter: parameter.slice(0, ANSWER_QUOTE_CHARACTERS_MAX), detail }))
  // A rule about several parameters reports the same sentence for each of them; the detail has it once.
  const details = [...new Set(listed.map((error) => error.detail))].join(' ')
  const detail = errors.size === 1 ? details : `${errors.size} parameters are wrong. ${details}`
  const code = isFormatUnknown && errors.size === 1 ? 'unknown_format' : 'invalid_parameter'
  return new ApiError(code, detail, { errors: listed })
}
