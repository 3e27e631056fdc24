// A body whose bytes depend on their offset, so that loss, repetition and reordering are all detected.

/** Fills `bytes` with the pattern from `offset` on. */
export function fillPattern(bytes: Uint8Array, offset: number): void {
  for (let index = 0; index < bytes.length; index++) {
    const position = offset + index
    bytes[index] = (position ^ (position >>> 8) ^ (position >>> 16)) & 0xff
  }
}

/** The first `sizeBytes` of the pattern. */
export function patternBytes(sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes)
  fillPattern(bytes, 0)
  return bytes
}
