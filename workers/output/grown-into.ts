/** `larger` with the elements of `array` at its start. */
export function grownInto<T extends Uint8Array | Uint16Array | Int32Array | Float64Array>(
  larger: T,
  array: T,
): T {
  larger.set(array)
  return larger
}
