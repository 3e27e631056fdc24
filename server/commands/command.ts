// The interface between main.ts and a command.

/** The process as a command sees it. */
export interface CommandIo {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  /** Aborted at the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly signal: AbortSignal
}

/** Runs a command with the arguments after its name and resolves to the exit code. */
export type Command = (args: readonly string[], io: CommandIo) => Promise<number>
