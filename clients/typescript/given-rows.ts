// Where a stream of order-book rows can go on that is compressed: behind the last whole row that was given. The server's
// answer from there on begins with the very bytes of the next row.

export const LINE_FEED = 10

/** A request for what is behind the rows that were given, and its beginning, which the reader has already. */
export interface NextRows {
  readonly target: string
  readonly known: Uint8Array
}

export class GivenRows {
  /** The last whole line. */
  #line = new Uint8Array(0)
  /** What was given behind it. */
  #rest: Uint8Array[] = []

  /** Undefined for answers that go on in no such way: those of other rows and formats, and the first rows alone. */
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

  /** Undefined before the first whole row. */
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
