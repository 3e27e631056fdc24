// Errors as plain data. A message between threads loses the class of an error and the system's facts.

import { PublishedInPartError } from './fold-raw-dates.ts'

/** The properties that the callers of a fold read. */
const FACTS = ['code', 'syscall', 'path', 'dest', 'errno'] as const
const CAUSES_MAX = 5

export interface PlainError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly facts: Readonly<Record<string, unknown>>
  /** Files that were published before the error. */
  readonly paths: readonly string[] | undefined
  readonly cause: PlainError | undefined
}

export function plainError(error: unknown, depth = 0): PlainError {
  if (!(error instanceof Error)) {
    return {
      name: 'Error',
      message: String(error),
      stack: undefined,
      facts: {},
      paths: undefined,
      cause: undefined,
    }
  }
  const { name, message, stack, cause } = error
  const values = error as unknown as Readonly<Record<string, unknown>>
  return {
    name,
    message,
    stack,
    facts: Object.fromEntries(
      FACTS.filter((key) => values[key] !== undefined).map((key) => [key, values[key]]),
    ),
    paths: error instanceof PublishedInPartError ? error.paths : undefined,
    cause: cause === undefined || depth === CAUSES_MAX ? undefined : plainError(cause, depth + 1),
  }
}

/** The error that `plainError` was given, with its name and facts. */
export function thrownError({ name, message, stack, facts, paths, cause }: PlainError): Error {
  const inner = cause === undefined ? undefined : thrownError(cause)
  const error =
    paths === undefined ? new Error(message, { cause: inner }) : new PublishedInPartError(paths, inner)
  error.name = name
  if (stack !== undefined) error.stack = stack
  return Object.assign(error, facts)
}
