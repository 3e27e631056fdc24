// One call of the TypeScript client, described as JSON, so that every runtime makes the same calls. Has no imports at run time,
// because browsers load it too.

import type * as client from '../../clients/typescript/bookcast.ts'

export interface ClientCall {
  readonly url: string
  /** In neither client's own spelling. */
  readonly options?: {
    readonly apiKey?: string
    readonly timeoutMs?: number
    readonly attempts?: number
    readonly firstWaitMs?: number
    readonly longestWaitMs?: number
    readonly resumes?: number
    readonly compress?: boolean
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

/** Makes one call with the given client module, as imported by the runtime. */
export async function callClient(bookcast: typeof client, call: ClientCall): Promise<ClientResult> {
  const { apiKey, timeoutMs, compress = true, ...retry } = call.options ?? {}
  const controller = new AbortController()
  const progress: [number, number][] = []
  try {
    const connected = new bookcast.Bookcast(call.url, {
      apiKey,
      timeoutMs,
      retry,
      compress,
      signal: controller.signal,
      ...(call.progress === true ? { onProgress: ({ rows, bytes }) => progress.push([rows, bytes]) } : {}),
    })
    const methods = connected as unknown as Readonly<Record<string, (...values: unknown[]) => unknown>>
    const answer = methods[call.method]?.call(
      connected,
      ...(call.positional ??
        (call.action === 'one' && call.parameters === undefined ? [] : [call.parameters ?? {}])),
    )
    if (call.action === 'one') return { value: await answer }
    return { ...(await read(call, { controller, answer: answer as Reading['answer'] })), progress }
  } catch (error) {
    return { error: describe(bookcast, error) }
  }
}

function describe(bookcast: typeof client, error: unknown): ClientError {
  if (error instanceof DOMException) return { type: 'CancelledError', message: error.message }
  if (!(error instanceof bookcast.BookcastError)) throw error
  return Object.assign(Object.fromEntries(Object.entries(error)), {
    type: error.name,
    message: error.message,
  })
}
