/** What the log of this process could not write. */
export const logLosses = { droppedBytes: 0 }
