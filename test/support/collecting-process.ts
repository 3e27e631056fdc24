// `bookcast serve --collect` or `bookcast ingest` in its own process with local upstreams, as seen from outside: its output,
// metrics and responses.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PROGRAM_ARGUMENTS } from './cold-workers.ts'
import type { CollectingWorld } from './collecting-world.ts'
import { temporaryDirectory } from './temporary-lake.ts'

const WAIT_MS_MAX = 120_000
const LOOK_MS = 100

export interface CollectingProcess {
  readonly url: string
  readonly lake: string
  /** All of its output. */
  output(): string
  metrics(): Promise<string>
  /** A metric's value; the name includes the labels as written. Undefined if there is none. */
  metric(name: string): Promise<number | undefined>
  /** Ends it like an operator, and expects a clean exit. */
  stop(): Promise<void>
}

/** @param env more variables than those that select the upstreams */
export async function startCollecting(
  t: TestContext,
  world: CollectingWorld,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
): Promise<CollectingProcess> {
  const root = await temporaryDirectory(t)
  const lake = join(root, 'lake')
  await mkdir(lake)
  const child = spawn(
    process.execPath,
    [...PROGRAM_ARGUMENTS, 'serve', '--lake', lake, '--port', '0', '--collect', ...args],
    {
      env: {
        ...process.env,
        ...(await world.environment(root)),
        BOOKCAST_KALSHI_SERIES: 'KXHIGHNY',
        BOOKCAST_LOG_LEVEL: 'warn',
        ...env,
      },
    },
  )
  t.after(() => kill(child))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)))
  await soon(
    () => {
      assert.equal(child.exitCode, null, output)
      return /at http:\/\/\S+\n/.test(output)
    },
    () => `the server does not listen: ${output}`,
  )
  const url = / at (http:\/\/\S+)\n/.exec(output)?.[1] ?? ''
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text()
  return {
    url,
    lake,
    output: () => output,
    metrics,
    async metric(name) {
      const line = (await metrics()).split('\n').find((each) => each.startsWith(`${name} `))
      return line === undefined ? undefined : Number(line.slice(name.length))
    },
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      assert.deepEqual(await exited, [0, null], output)
    },
  }
}

/** Waits for something that a process will do, for at most two minutes, which is longer than any of its pauses. */
export async function soon(
  isReached: () => boolean | Promise<boolean>,
  complaint: () => string | Promise<string>,
): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX
  for (;;) {
    const beginMs = performance.now()
    if (await isReached()) return
    const endMs = performance.now()
    if (endMs > deadlineMs) assert.fail(await complaint())
    // Polling takes at most a tenth of the time.
    await delay(Math.max(LOOK_MS, 9 * (endMs - beginMs)))
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
