/** The log of a long-running task: lines with their context. */
export interface TaskLog {
  info(context: object, text: string): void
  warn(context: object, text: string): void
  error(context: object, text: string): void
}
