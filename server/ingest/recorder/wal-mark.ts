// The recorder's own words in the log, in the form of frames: an import reads them like the exchange's.

import type { Frame } from '../../feed/frame.ts'

/** From here on nothing is known until the next connection. */
export function disconnectMark(): Frame {
  return { type: 'disconnect' }
}

/** Everything until `ms` has been heard, whether anything was said or not. Both exchanges' forms of a time. */
export function heardMark(ms: number): Frame {
  return { type: 'heartbeat', ts_ms: ms, timestamp: String(ms) }
}
