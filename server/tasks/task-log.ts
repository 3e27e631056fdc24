/** What a task that runs for long says: a line with what it is about. */
export interface TaskLog {
  info(context: object, text: string): void
  warn(context: object, text: string): void
  error(context: object, text: string): void
}
