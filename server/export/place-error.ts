// An error of a place that the work needs: the target, or the place that the lake is pulled from. No part is at fault, and the same
// part may be made on another machine, or later.

import { messageOf } from '../../shared/error-message.ts'

export class PlaceError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'PlaceError'
  }
}

/** The same error, unless the signal was aborted: then its reason is thrown. */
export function asPlaceError(error: unknown, signal: AbortSignal, sentence?: string): PlaceError {
  signal.throwIfAborted()
  if (error instanceof PlaceError) return error
  return new PlaceError(sentence ?? messageOf(error), error)
}
