// The command-line program, for tests of its output and exit code. With quick effort it runs in the test's process, since starting
// Node takes longer than most commands; with full effort in its own process. Tests of signals, threads and serving always start a
// process.

import { spawn } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type ProgramIo, runProgram } from '../../server/program.ts'
import { PROGRAM_ARGUMENTS } from './cold-workers.ts'
import { IS_FULL_EFFORT } from './effort.ts'

export interface Ended {
  /** The exit code; null if a signal ended the process. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface ProgramSurroundings {
  /** Variables in addition to the tests' own environment. */
  readonly env?: NodeJS.ProcessEnv
  /** The content of stdin. */
  readonly input?: string | Buffer
}

/** Runs the program to its end. */
export async function bookcast(
  args: readonly string[],
  surroundings: ProgramSurroundings = {},
): Promise<Ended> {
  return IS_FULL_EFFORT
    ? processEnd([process.execPath, ...PROGRAM_ARGUMENTS, ...args], surroundings)
    : runHere(args, surroundings)
}

/** Runs a system command to its end. `identity`: another user than that of the tests. */
export async function processEnd(
  [command = '', ...args]: readonly string[],
  { env = {}, input = '' }: ProgramSurroundings = {},
  identity: { readonly uid?: number; readonly gid?: number } = {},
): Promise<Ended> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, ...identity })
  // A program that rejects its input early does not read all of it.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve)
    child.once('error', reject)
  })
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}

/** A stream that is not a terminal. */
class Output extends Writable {
  readonly pieces: Buffer[] = []

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.pieces.push(piece)
    done()
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString()
  }
}

async function runHere(
  args: readonly string[],
  { env = {}, input = '' }: ProgramSurroundings,
): Promise<Ended> {
  const [stdout, stderr] = [new Output(), new Output()]
  const io = {
    env: { ...process.env, ...env },
    stdin: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    stdout,
    stderr,
    stopSignal: () => new AbortController().signal,
  }
  // A process's streams have more members than a command may use.
  const code = await runProgram(args, io as unknown as ProgramIo)
  return { code, stdout: stdout.text, stderr: stderr.text }
}
