#!/usr/bin/env node
// The command-line program as a process: its streams, environment and signals.

import { processEnvironment } from './service/config.ts'
import { runProgram } from './program.ts'

/** Aborts at the first SIGINT or SIGTERM. The second one ends the process with the exit code of that signal. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const [name, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) {
        // If a thread that waits for an unresponsive file delays the exit, a third signal kills the process.
        process.removeAllListeners(name)
        process.exit(128 + number)
      }
      controller.abort(name)
    })
  }
  return controller.signal
}

/** The exit code of a program that SIGPIPE ends. */
const EXIT_PIPE_CLOSED = 128 + 13
process.stdout.once('error', (error: NodeJS.ErrnoException) => {
  // The reader has closed the pipe: `bookcast status | head`.
  if (error.code === 'EPIPE') process.exit(EXIT_PIPE_CLOSED)
  process.exitCode = 1
  process.stderr.write(`bookcast: the output cannot be written: ${error.message}\n`)
})
process.stdout.on('error', () => {})
// A command whose progress or log cannot be shown still does its work.
process.stderr.on('error', () => {})

const exitCode = await runProgram(process.argv.slice(2), {
  env: processEnvironment,
  get stdin() {
    return process.stdin
  },
  stdout: process.stdout,
  stderr: process.stderr,
  stopSignal,
})
if (exitCode !== 0) process.exitCode = exitCode
