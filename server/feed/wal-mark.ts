// What the recorder itself says of a connection in its log, in the form of frames.

import type { Frame } from './frame.ts'

/** A connection begins. */
export function openMark(): Frame {
  return { type: 'open' }
}

/** What the connection brought since its line before may be lost. */
export function lostMark(): Frame {
  return { type: 'lost' }
}

/** The connection has ended. */
export function disconnectMark(): Frame {
  return { type: 'disconnect' }
}

/** The connection was heard until `ms`. */
export function heardMark(ms: number): Frame {
  return { type: 'heartbeat', ts_ms: ms, timestamp: String(ms) }
}
