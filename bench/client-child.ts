// Reads one long response as rows, in its own process: with the TypeScript client, or with fetch and JSON.parse per line, as a
// program without the client would. Takes the way, the server's address and the request's parameters as JSON; prints a
// ClientReading.

import { bookcast } from '../test/support/client-drivers.ts'
import { readProcessMemory } from './process-status.ts'

export interface ClientReading {
  readonly rows: number
  readonly totalMs: number
  /** Peak memory during the reading minus memory before; null if it cannot be read. */
  readonly grownMb: number | null
}

interface Request {
  readonly way: 'client' | 'bare'
  readonly url: string
  readonly parameters: {
    readonly series: string
    readonly date: string
    readonly interval: number
    readonly levels: number
  }
  /** A short request first, so that all code is loaded. */
  readonly warmUp: {
    readonly series: string
    readonly date: string
    readonly interval: number
    readonly levels: number
  }
}

function answerOf(url: string, parameters: Request['parameters']) {
  return new bookcast.Bookcast(url).lob(parameters)
}

async function readWithClient(url: string, parameters: Request['parameters']): Promise<number> {
  let rows = 0
  for await (const row of answerOf(url, parameters)) if (row.ts > 0) rows += 1
  return rows
}

/** The peer: no timeout, no check of the end, no types. */
async function readBare(url: string, parameters: Request['parameters']): Promise<number> {
  const response = await fetch(answerOf(url, parameters).url('ndjson'))
  const decoder = new TextDecoder()
  let rows = 0
  let rest = ''
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if ((JSON.parse(line) as { ts: number }).ts > 0) rows += 1
  }
  return rows
}

const request: Request = JSON.parse(process.argv[2] ?? '')
const read = request.way === 'client' ? readWithClient : readBare
await read(request.url, request.warmUp)
const before = await readProcessMemory(process.pid)
const startMs = performance.now()
const rows = await read(request.url, request.parameters)
const totalMs = performance.now() - startMs
const after = await readProcessMemory(process.pid)
const grownMb =
  before === undefined || after === undefined ? null : (after.peakBytes - before.residentBytes) / 1e6
const reading: ClientReading = { rows, totalMs, grownMb }
process.stdout.write(`${JSON.stringify(reading)}\n`)
