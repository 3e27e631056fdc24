// Runs the commands of operations/README.md exactly as written: in a shell that finds this build as `bookcast`, in a new directory.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PROGRAM_ARGUMENTS } from './cold-workers.ts'
import { temporaryDirectory } from './temporary-lake.ts'

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const WAIT_MS_MAX = 120_000

/** The commands below a heading of the page, one text per block. */
export async function commandsUnder(heading: string): Promise<string[]> {
  const page = await readFile(join(ROOT, 'operations/README.md'), 'utf8')
  const [, section] = page.split(`\n## ${heading}\n`)
  assert.ok(section !== undefined, `the page has no section ${heading}`)
  const [own = ''] = section.split('\n## ')
  const blocks = [...own.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text)
  assert.ok(blocks.length > 0, `${heading} has no commands`)
  return blocks
}

export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Commands that run until they are stopped. */
export interface Running {
  readonly output: () => string
  /** Stops them like systemd and users do. */
  stop(): Promise<Ended>
}

export class Shell {
  readonly directory: string
  readonly #t: TestContext
  readonly #env: NodeJS.ProcessEnv

  private constructor(t: TestContext, directory: string, env: NodeJS.ProcessEnv) {
    this.#t = t
    this.directory = directory
    this.#env = env
  }

  /** @param programs other programs that the commands call, by name: the text of a shell script */
  static async open(
    t: TestContext,
    env: NodeJS.ProcessEnv,
    programs: Readonly<Record<string, string>> = {},
  ): Promise<Shell> {
    const directory = await temporaryDirectory(t)
    const bin = join(directory, '.bin')
    await mkdir(bin)
    const bookcast = `exec '${process.execPath}' --enable-source-maps ${PROGRAM_ARGUMENTS.join(' ')} "$@"`
    for (const [name, text] of Object.entries({ bookcast, ...programs })) {
      await writeFile(join(bin, name), `#!/usr/bin/env bash\n${text}\n`)
      await chmod(join(bin, name), 0o755)
    }
    return new Shell(t, directory, { ...process.env, ...env, PATH: `${bin}:${process.env['PATH']}` })
  }

  /** Runs commands to their end, and stops at the first failure. */
  async run(commands: string): Promise<Ended> {
    const { child, output } = this.#spawn(commands)
    const timer = setTimeout(() => end(child, 'SIGKILL'), WAIT_MS_MAX)
    await exitOf(child)
    clearTimeout(timer)
    return { code: child.exitCode, output: output() }
  }

  /** Expects every command to succeed; returns their output. */
  async succeed(commands: string): Promise<string> {
    const { code, output } = await this.run(commands)
    assert.equal(code, 0, `${commands}\n${output}`)
    return output
  }

  /** Starts commands of which the last one keeps running. */
  start(commands: string): Running {
    const { child, output } = this.#spawn(commands)
    this.#t.after(() => end(child, 'SIGKILL'))
    return {
      output,
      async stop() {
        end(child, 'SIGTERM')
        await exitOf(child)
        return { code: child.exitCode, output: output() }
      },
    }
  }

  #spawn(commands: string) {
    // The last command replaces the shell, so that its exit code is the shell's when the shell is stopped.
    const lines = commands.trimEnd().split('\n')
    const last = lines.at(-1) ?? ''
    const text = /^bookcast (ingest|serve|work) /.test(last)
      ? [...lines.slice(0, -1), `exec ${last}`].join('\n')
      : commands
    const child = spawn('bash', ['-euo', 'pipefail', '-c', text], {
      cwd: this.directory,
      env: this.#env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += String(data)))
    return { child, output: () => said }
  }
}

/** Ends the shell and all of its children. */
function end({ pid, exitCode, signalCode }: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  process.kill(-pid, signal)
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** A system PostgreSQL server for one test; undefined if there is none: then the test is skipped with a message. */
export async function startPostgres(t: TestContext): Promise<string | undefined> {
  const server = spawn(join(ROOT, '.ci/with-postgres'), ['bash', '-c', 'echo "at $DATABASE_URL"; cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(async () => {
    server.stdin.end()
    await exitOf(server)
  })
  let said = ''
  for await (const data of server.stdout) {
    said += String(data)
    const url = /^at (\S+)$/m.exec(said)?.[1]
    if (url !== undefined) return url
  }
  t.skip(said.trim())
  return undefined
}
