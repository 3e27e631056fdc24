// The errors that readers of lake files throw. They name the file by its path below the lake's root, not by its absolute path,
// because the text reaches clients.

import { relative } from 'node:path'
import { messageOf } from '../../shared/error-message.ts'
import { ApiError } from '../../shared/errors.ts'

/** The error for a lake file that cannot be served: damaged, of another schema, or unreadable. */
export function lakeFileError(name: string, reason: string, cause?: unknown): ApiError {
  return new ApiError('lake_file_invalid', `The lake file ${name} cannot be read: ${reason}.`, { cause })
}

/** The error for a directory of the lake that cannot be listed, or a missing lake. */
export function lakeUnavailable(lake: string, directory: string, cause: unknown): ApiError {
  const name = relative(lake, directory)
  const subject = name === '' ? 'The lake' : `The lake's directory ${name}`
  const reason = (cause as NodeJS.ErrnoException).code ?? 'it is not readable'
  return new ApiError('lake_unavailable', `${subject} cannot be read: ${reason}.`, { cause })
}

/** Runs `read` and turns any error into one that names the file. */
export function namingFile<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw lakeFileError(name, messageOf(error), error)
  }
}
