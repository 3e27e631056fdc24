// The two clients behind one face, so that one test puts both through the same. Each is the file that the server hands
// out: the one ES module, and the Python module in a process of its own.

import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import type * as client from '../../clients/typescript/bookcast.ts'

const SERVED = fileURLToPath(new URL('../../site/clients/', import.meta.url))
const PYTHON_DRIVER = fileURLToPath(new URL('../../../test/clients/python-driver.py', import.meta.url))

export interface ClientCall {
  readonly url: string
  /** In the spelling of neither client. */
  readonly options?: {
    readonly apiKey?: string
    readonly timeoutMs?: number
    readonly attempts?: number
    readonly firstWaitMs?: number
    readonly longestWaitMs?: number
  }
  /** In TypeScript's spelling. */
  readonly method: string
  readonly positional?: readonly string[]
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly action: 'rows' | 'one' | 'file' | 'bytes' | 'cancel' | 'leave'
  readonly path?: string
  readonly progress?: boolean
}

export interface ClientError {
  readonly type: string
  readonly message: string
  readonly status?: number
  readonly code?: string
  readonly errors?: readonly { readonly parameter: string; readonly detail: string }[]
  readonly rows?: number
  readonly bytes?: number
}

export interface ClientResult {
  readonly rows?: readonly Readonly<Record<string, unknown>>[]
  readonly value?: unknown
  readonly bytes?: number
  readonly missingDates?: readonly string[]
  readonly progress?: readonly (readonly [number, number])[]
  readonly error?: ClientError
}

export interface ClientDriver {
  readonly name: string
  call(call: ClientCall): Promise<ClientResult>
}

export const bookcast = (await import(
  new URL('../../site/clients/bookcast.js', import.meta.url).href
)) as typeof client

interface Reading {
  readonly controller: AbortController
  readonly answer: client.Answer<Readonly<Record<string, unknown>>>
}

async function read(call: ClientCall, { controller, answer }: Reading): Promise<ClientResult> {
  if (call.action === 'rows') {
    const rows = await answer.toArray()
    return { rows, missingDates: answer.missingDates }
  }
  if (call.action === 'file') return { bytes: (await answer.toFile(call.path ?? '')).bytes }
  if (call.action === 'bytes') {
    let bytes = 0
    for await (const chunk of answer.bytes()) bytes += chunk.length
    return { bytes }
  }
  const rows: Readonly<Record<string, unknown>>[] = []
  if (call.action === 'cancel') {
    for await (const batch of answer.batches()) {
      rows.push(...batch)
      controller.abort()
    }
    return { rows }
  }
  for await (const row of answer) {
    rows.push(row)
    if (rows.length === 10) break
  }
  return { rows }
}

async function callTypeScript(call: ClientCall): Promise<ClientResult> {
  const { apiKey, timeoutMs, ...retry } = call.options ?? {}
  const controller = new AbortController()
  const progress: [number, number][] = []
  try {
    const connected = new bookcast.Bookcast(call.url, {
      apiKey,
      timeoutMs,
      retry,
      compress: true,
      signal: controller.signal,
      ...(call.progress === true ? { onProgress: ({ rows, bytes }) => progress.push([rows, bytes]) } : {}),
    })
    const methods = connected as unknown as Readonly<Record<string, (...values: unknown[]) => unknown>>
    const answer = methods[call.method]?.call(
      connected,
      ...(call.positional ?? (call.action === 'one' ? [] : [call.parameters ?? {}])),
    )
    if (call.action === 'one') return { value: await answer }
    return { ...(await read(call, { controller, answer: answer as Reading['answer'] })), progress }
  } catch (error) {
    return { error: describe(error) }
  }
}

function describe(error: unknown): ClientError {
  if (error instanceof DOMException) return { type: 'CancelledError', message: error.message }
  if (!(error instanceof bookcast.BookcastError)) throw error
  return Object.assign(Object.fromEntries(Object.entries(error)), {
    type: error.name,
    message: error.message,
  })
}

export const typescriptClient: ClientDriver = { name: 'TypeScript', call: callTypeScript }

const PYTHON_NAMES: Readonly<Record<string, string>> = { from: 'start', to: 'end' }

/** The oldest Python that the client is for, where it is installed, else any; null where there is none. */
export const PYTHON =
  [
    process.env['BOOKCAST_TEST_PYTHON'] ?? '',
    `${process.env['HOME']}/.pyenv/versions/3.9.18/bin/python3`,
    '/usr/bin/python3',
  ].find((path) => path !== '' && existsSync(path)) ?? null

/** Why tests of the Python client are skipped; false where Python is installed. */
export const withoutPython: false | string = PYTHON === null ? 'no Python is installed' : false

/** A Python with pandas, which has it from Debian; null where there is none. */
export const PANDAS_PYTHON =
  [PYTHON, '/usr/bin/python3'].find(
    (path) => path !== null && existsSync(path) && spawnSync(path, ['-c', 'import pandas']).status === 0,
  ) ?? null

export const PYTHON_ENVIRONMENT: NodeJS.ProcessEnv = {
  ...process.env,
  PYTHONPATH: SERVED,
  PYTHONDONTWRITEBYTECODE: '1',
  no_proxy: '*',
}

/** What the client's call looks like in Python. */
function pythonCall(call: ClientCall): object {
  const { options = {}, parameters = {} } = call
  const { apiKey, timeoutMs, attempts, firstWaitMs, longestWaitMs } = options
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
      ...(firstWaitMs === undefined ? {} : { first_wait: seconds(firstWaitMs) }),
      ...(longestWaitMs === undefined ? {} : { longest_wait: seconds(longestWaitMs) }),
    },
  }
}

/** The Python client, in one process for all calls of this test file. */
export class PythonClient implements ClientDriver {
  readonly name = 'Python'
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  #errors = ''

  /** @param modules directories in which Python looks for modules first */
  constructor(python: string, modules: readonly string[] = []) {
    const env = { ...PYTHON_ENVIRONMENT, PYTHONPATH: [...modules, SERVED].join(':') }
    this.#child = spawn(python, [PYTHON_DRIVER], { env })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  async call(call: ClientCall): Promise<ClientResult> {
    return (await this.raw(pythonCall(call))) as ClientResult
  }

  /** A call in Python's own spelling. */
  async raw(call: object): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify(call)}\n`)
    const { done, value } = await this.#lines.next()
    if (done === true) throw new Error(`the Python client ended: ${this.#errors}`)
    return JSON.parse(value) as unknown
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const closed = once(this.#child, 'close')
    this.#child.stdin.end()
    await closed
  }
}

/** Both clients, or the one there is. */
export function clientsOfThisFile(): readonly ClientDriver[] {
  if (PYTHON === null) return [typescriptClient]
  const python = new PythonClient(PYTHON)
  after(() => python.close())
  return [typescriptClient, python]
}
