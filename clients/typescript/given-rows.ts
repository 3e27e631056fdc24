// Where a compressed stream of order-book rows can be resumed: after the last complete row that the reader received. The
// server's response from there begins with exactly the bytes of the next row.

export const LINE_FEED = 10

/** The request for the remaining rows, and the first bytes of its response, which the reader already has. */
export interface NextRows {
  readonly target: string
  readonly known: Uint8Array
}

export class GivenRows {
  /** The last complete line. */
  #line = new Uint8Array(0)
  /** The bytes received after it. */
  #rest: Uint8Array[] = []

  /** Undefined if the response cannot be resumed this way: other rows or another format, or a request with `limit`. */
  static of(target: string): GivenRows | undefined {
    const [path = '', query = ''] = target.split('?', 2)
    const parameters = new URLSearchParams(query)
    const columns = parameters.get('columns')?.split(',') ?? ['ts', 'market_id']
    const isPlaced = columns.includes('ts') && columns.includes('market_id')
    const isOpen = parameters.get('format') === 'ndjson' && !parameters.has('limit')
    return path === '/api/v1/lob' && isPlaced && isOpen ? new GivenRows() : undefined
  }

  take(chunk: Uint8Array): void {
    const end = chunk.lastIndexOf(LINE_FEED)
    const rest = chunk.slice(end + 1)
    if (end === -1) this.#rest.push(rest)
    else {
      const start = end === 0 ? -1 : chunk.lastIndexOf(LINE_FEED, end - 1)
      this.#line =
        start === -1 ? joined([...this.#rest, chunk.subarray(0, end)]) : chunk.slice(start + 1, end)
      this.#rest = [rest]
    }
  }

  /** Undefined before the first complete row. */
  next(target: string): NextRows | undefined {
    const row = rowOf(this.#line)
    if (row === undefined) return undefined
    const [path = '', query = ''] = target.split('?', 2)
    const parameters = new URLSearchParams(query)
    parameters.set('after', `${row.ts},${row.market_id}`)
    return { target: `${path}?${parameters.toString()}`, known: joined(this.#rest) }
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let position = 0
  for (const part of parts) {
    whole.set(part, position)
    position += part.length
  }
  return whole
}

function rowOf(line: Uint8Array): { readonly ts: number; readonly market_id: string } | undefined {
  try {
    const { ts, market_id: market } = JSON.parse(new TextDecoder().decode(line)) as Record<string, unknown>
    return typeof ts === 'number' && typeof market === 'string' ? { ts, market_id: market } : undefined
  } catch {
    return undefined
  }
}
