// The buffer in which text rows are written before they are copied into a chunk; one per thread, allocated once. Because it never
// changes, V8 compiles it as a constant and omits checks at every store, which saves far more than the copy costs. Copy the rows
// out before the next `await`: another request of the thread may use the buffer then.

import { CHUNK_BYTES } from '../../shared/limits.ts'

export const rowBytes = new Uint8Array(CHUNK_BYTES)
export const rowView = new DataView(rowBytes.buffer)
