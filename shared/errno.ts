// Error codes of failed system calls.

/** Whether the error has this code, such as `ENOENT`. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** For `catch`: returns undefined if the file or a directory of its path does not exist, and rethrows any other error. */
export function noneThere(error: unknown): undefined {
  if (!isErrno(error, 'ENOENT') && !isErrno(error, 'ENOTDIR')) throw error
}
