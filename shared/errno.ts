// What the operating system says of a failed call.

/** Whether the error has this code, as `ENOENT`. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
