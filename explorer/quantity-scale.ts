// Quantities as shades on a logarithmic scale. A quantity becomes a code of one byte when it arrives, and a code becomes a
// colour when it is drawn. The scale can therefore grow while a response streams, without computing any code again.

import { viridis } from './viridis.ts'

/** Codes for a factor of two. One byte holds 31 doublings, more than any quantity needs. */
const CODES_PER_DOUBLING = 8
const CODE_MAX = 255

/** 0 for nothing, else 1 to 255. */
export function quantityCode(quantity: number): number {
  if (quantity <= 0) return 0
  return Math.min(CODE_MAX, 1 + Math.round(CODES_PER_DOUBLING * Math.log2(Math.max(1, quantity))))
}

/** The quantity that a code stands for. */
export function codeQuantity(code: number): number {
  return code === 0 ? 0 : 2 ** ((code - 1) / CODES_PER_DOUBLING)
}

/** The colour of every code as a little-endian RGBA number; 0 (transparent) for code 0. */
export function shadeTable(largestCode: number): Uint32Array {
  const table = new Uint32Array(CODE_MAX + 1)
  for (let code = 1; code <= CODE_MAX; code += 1) {
    const [red, green, blue] = viridis((code - 1) / Math.max(1, largestCode - 1))
    table[code] = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0
  }
  return table
}
