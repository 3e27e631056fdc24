// What the operating system says of a failed call.

/** Whether the error has this code, as `ENOENT`. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** For `catch`: undefined where there is no such file, nor the directories of its path; any other failure goes on. */
export function noneThere(error: unknown): undefined {
  if (!isErrno(error, 'ENOENT') && !isErrno(error, 'ENOTDIR')) throw error
}
