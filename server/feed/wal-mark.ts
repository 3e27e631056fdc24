// The recorder's own events of a connection in its log, as frames. The lines of segments have the same events; in the log, `close`
// and `alive` have the names of version 0.1.

import type { Frame } from './frame.ts'

/** A connection has opened. */
export function openMark(): Frame {
  return { type: 'open' }
}

/** Messages of the connection after its previous line may be lost. */
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
