// The process's log on stderr: one JSON object per line, or a readable line on a terminal. Lines are copied into one block of
// bytes, which the thread pool writes when it is full or 100 ms old. As strings they would cost more than the requests
// that they describe, because V8 copies objects twice that live for some milliseconds.

import { type DestinationStream, type Logger, pino } from 'pino'
import { LOG_BLOCK_BYTES, LOG_LINE_BYTES_MAX } from '../../shared/limits.ts'

const LOG_FLUSH_MS = 100

interface TextSink {
  write(text: string): unknown
  flushSync(): void
}

/** Collects lines and writes them in blocks. */
export class LineBlocks {
  readonly #sink: TextSink
  readonly #block = Buffer.allocUnsafe(LOG_BLOCK_BYTES + LOG_LINE_BYTES_MAX)
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(sink: TextSink) {
    this.#sink = sink
  }

  write(line: string): void {
    // A UTF-16 code unit takes at most three bytes in UTF-8.
    if (line.length * 3 > LOG_LINE_BYTES_MAX) {
      this.#passOn()
      this.#sink.write(line)
      return
    }
    this.#bytes += this.#block.write(line, this.#bytes)
    if (this.#bytes >= LOG_BLOCK_BYTES) this.#passOn()
    else this.#timer ??= setTimeout(() => this.#passOn(), LOG_FLUSH_MS).unref()
  }

  /** Writes what is still in memory, and waits for it. */
  flushSync(): void {
    this.#passOn()
    this.#sink.flushSync()
  }

  #passOn(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#bytes > 0) this.#sink.write(this.#block.toString('utf8', 0, this.#bytes))
    this.#bytes = 0
  }
}

interface LogEntry {
  readonly level: number
  /** ms since the epoch. */
  readonly time: number
  readonly msg: string
  readonly err?: { readonly message: string }
  readonly [name: string]: unknown
}

function wordOf(value: unknown): string {
  return typeof value === 'string' && /^[!-~]+$/.test(value) ? value : JSON.stringify(value)
}

/** A log line in readable form: `18:00:00 info request method=GET status=200`. */
export function readableLine(line: string): string {
  const { level, time, msg, err, ...rest }: LogEntry = JSON.parse(line)
  const facts = Object.entries(err === undefined ? rest : { ...rest, error: err.message })
  const words = facts.map(([name, value]) => `${name}=${wordOf(value)}`)
  const label = pino.levels.labels[level] ?? String(level)
  return `${[new Date(time).toISOString().slice(11, 19), label, msg, ...words].join(' ')}\n`
}

export interface Log {
  readonly logger: Logger
  /** Call its `flushSync` before the exit. */
  readonly destination: DestinationStream & { flushSync(): void }
}

/** @param isTerminal whether stderr is a terminal: then lines are written in readable form */
export function openLog(level: string, isTerminal: boolean): Log {
  const sink = new LineBlocks(pino.destination({ fd: 2, sync: false }))
  const destination = isTerminal
    ? { write: (line: string) => sink.write(readableLine(line)), flushSync: () => sink.flushSync() }
    : sink
  return { destination, logger: pino({ level, base: null }, destination) }
}
