// Where text rows are written before they are copied into a chunk: one buffer a thread, made once. A buffer that never
// changes is a constant of the compiled code, which saves the checks of every single store; that is worth far more than
// the copy costs. What is in it must be copied out before anything is awaited: another request of the thread may be next.

import { CHUNK_BYTES } from '../../shared/limits.ts'

export const rowBytes = new Uint8Array(CHUNK_BYTES)
export const rowView = new DataView(rowBytes.buffer)
