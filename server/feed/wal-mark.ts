// What the recorder itself says of a connection in its log, in the form of frames. The lines of segments have the same events;
// `close` and `alive` have other names in the log, which are those of 0.1.

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
export function closeMark(): Frame {
  return { type: 'disconnect' }
}

/** The connection was alive at `ms`. */
export function aliveMark(ms: number): Frame {
  return { type: 'heartbeat', ts_ms: ms, timestamp: String(ms) }
}
