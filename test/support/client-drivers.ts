// One interface to both clients, so that one test covers them. Each is the file that the server serves: the ES module, in Node and
// in other installed runtimes, and the Python module in its own process.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as bookcast from 'bookcast/client'
import { BrowserClient } from './browser-client.ts'
import { IS_FULL_EFFORT } from './effort.ts'
import { withoutChromium } from './chromium.ts'
import { LineProcess } from './line-process.ts'
import { callClient, type ClientCall, type ClientResult } from './typescript-calls.ts'

export type { ClientCall } from './typescript-calls.ts'
export { bookcast }

const SERVED = fileURLToPath(new URL('../../site/clients/', import.meta.url))
const TYPESCRIPT_DRIVER = fileURLToPath(new URL('typescript-driver.js', import.meta.url))
const PYTHON_DRIVER = fileURLToPath(new URL('../../../test/clients/python-driver.py', import.meta.url))

export interface ClientDriver {
  readonly name: string
  /** Whether it writes files: browsers cannot. */
  readonly hasFiles: boolean
  call(call: ClientCall): Promise<ClientResult>
}

const typescriptClient: ClientDriver = {
  name: 'TypeScript',
  hasFiles: true,
  call: (call) => callClient(bookcast, call),
}

const PYTHON_NAMES: Readonly<Record<string, string>> = { from: 'start', to: 'end' }

/** The oldest supported Python if it is installed, else any; null if there is none. */
export const PYTHON =
  [
    process.env['BOOKCAST_TEST_PYTHON'] ?? '',
    `${process.env['HOME']}/.pyenv/versions/3.9.18/bin/python3`,
    '/usr/bin/python3',
  ].find((path) => path !== '' && existsSync(path)) ?? null

/** Why tests of the Python client are skipped; false if Python is installed. */
export const withoutPython: false | string = PYTHON === null ? 'no Python is installed' : false

/** A Python that has a library: the one for tests, or Debian's; null if neither has it. */
export function pythonWith(library: string): string | null {
  const has = (path: string): boolean => spawnSync(path, ['-c', `import ${library}`]).status === 0
  return [PYTHON, '/usr/bin/python3'].find((path) => path !== null && existsSync(path) && has(path)) ?? null
}

/** A Python with pandas from Debian; null if there is none. */
export const PANDAS_PYTHON = pythonWith('pandas')

export const PYTHON_ENVIRONMENT: NodeJS.ProcessEnv = {
  ...process.env,
  PYTHONPATH: SERVED,
  PYTHONDONTWRITEBYTECODE: '1',
  no_proxy: '*',
}

/** The client's call in Python's form. */
function pythonCall(call: ClientCall): object {
  const { options = {}, parameters = {} } = call
  const { apiKey, timeoutMs, attempts, firstWaitMs, longestWaitMs, resumes, compress } = options
  const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000)
  return {
    ...call,
    method: call.method.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([name, value]) => [PYTHON_NAMES[name] ?? name, value]),
    ),
    options: {
      api_key: apiKey,
      ...(timeoutMs === undefined ? {} : { timeout: seconds(timeoutMs) }),
      ...(attempts === undefined ? {} : { attempts }),
      ...(resumes === undefined ? {} : { resumes }),
      ...(compress === undefined ? {} : { compress }),
      ...(firstWaitMs === undefined ? {} : { first_wait: seconds(firstWaitMs) }),
      ...(longestWaitMs === undefined ? {} : { longest_wait: seconds(longestWaitMs) }),
    },
  }
}

/** The Python client, in one process for all calls of this test file. */
export class PythonClient implements ClientDriver {
  readonly name = 'Python'
  readonly hasFiles = true
  readonly #process: LineProcess

  /** @param modules directories that Python searches first for modules */
  constructor(python: string, modules: readonly string[] = []) {
    const env = { ...PYTHON_ENVIRONMENT, PYTHONPATH: [...modules, SERVED].join(':') }
    this.#process = new LineProcess(python, [PYTHON_DRIVER], env)
  }

  async call(call: ClientCall): Promise<ClientResult> {
    return (await this.raw(pythonCall(call))) as ClientResult
  }

  /** A call in Python's own form. */
  raw(call: object): Promise<unknown> {
    return this.#process.ask(call)
  }

  close(): Promise<void> {
    return this.#process.close()
  }
}

/** Other runtimes of the TypeScript client: the variable with the path, and the arguments. */
const RUNTIMES = [
  {
    name: 'Deno',
    program: 'deno',
    variable: 'BOOKCAST_TEST_DENO',
    options: ['run', '--quiet', '--allow-all'],
  },
  { name: 'Bun', program: 'bun', variable: 'BOOKCAST_TEST_BUN', options: ['run'] },
] as const

/** The path of an installed runtime; undefined if it is not installed. */
function runtimePath({ program, variable }: (typeof RUNTIMES)[number]): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(delimiter)
  const places = [process.env[variable] ?? '', ...directories.map((directory) => join(directory, program))]
  return places.find((place) => isAbsolute(place) && existsSync(place))
}

/** Why runtimes of the TypeScript client are skipped, one sentence each. */
export const missingRuntimes: readonly string[] = [
  ...RUNTIMES.filter((runtime) => runtimePath(runtime) === undefined).map(
    ({ name, variable }) => `${name} is not installed (${variable} names one elsewhere)`,
  ),
  ...[withoutBrowser()].filter((reason) => reason !== false),
]

function withoutBrowser(): false | string {
  return withoutChromium === false && !IS_FULL_EFFORT
    ? 'a browser runs the client with full effort'
    : withoutChromium
}

/** Every client that can run here: TypeScript in Node, Deno, Bun and a browser, and Python. */
export function clientsOfThisFile(): readonly ClientDriver[] {
  const runtimes = RUNTIMES.flatMap((runtime) => {
    const path = runtimePath(runtime)
    if (path === undefined) return []
    const driver = new LineProcess(path, [...runtime.options, TYPESCRIPT_DRIVER], process.env)
    after(() => driver.close())
    const call = async (given: ClientCall) => (await driver.ask(given)) as ClientResult
    return [{ name: `TypeScript in ${runtime.name}`, hasFiles: true, call }]
  })
  const browser = withoutBrowser() === false ? [new BrowserClient()] : []
  const python = PYTHON === null ? [] : [new PythonClient(PYTHON)]
  for (const each of [...browser, ...python]) after(() => each.close())
  return [typescriptClient, ...python, ...runtimes, ...browser]
}
