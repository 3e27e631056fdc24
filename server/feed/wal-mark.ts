// The recorder's own words in the log, in the form of frames: an import reads them like the exchange's.

import type { Frame } from './frame.ts'

/** From here on nothing is known until the next connection. */
export function disconnectMark(): Frame {
  return { type: 'disconnect' }
}

/** Everything until `ms` has been heard, whether anything was said or not. A time in every form that decoders read. */
export function heardMark(ms: number): Frame {
  return { type: 'heartbeat', ts_ms: ms, timestamp: String(ms) }
}
