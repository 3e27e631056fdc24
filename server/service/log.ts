// The process's log on stderr: one JSON object per line, or a readable line on a terminal. Lines are copied into one block of
// bytes, which the thread pool writes when it is full or 100 ms old. As strings they would cost more than the requests
// that they describe, because V8 copies objects twice that live for some milliseconds.

import { write, writeSync } from 'node:fs'
import { pino } from 'pino'
import { logLosses } from '../metrics/log-losses.ts'
import { LOG_BLOCK_BYTES, LOG_LINE_BYTES_MAX, LOG_WAITING_BYTES_MAX } from '../../shared/limits.ts'

const LOG_FLUSH_MS = 100
/** Pause before a failed write is repeated. */
const LOG_RETRY_MS = 100
const LOG_FLUSH_TRIES = 5

interface ByteSink {
  /** Keeps the bytes. */
  write(bytes: Uint8Array): void
  flushSync(): void
}

/** Collects lines and writes them in blocks. */
export function lineBlocks(sink: ByteSink) {
  const block = Buffer.allocUnsafe(LOG_BLOCK_BYTES + LOG_LINE_BYTES_MAX)
  let blockBytes = 0
  let timer: NodeJS.Timeout | undefined
  const passOn = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (blockBytes > 0) sink.write(Buffer.copyBytesFrom(block, 0, blockBytes))
    blockBytes = 0
  }
  return {
    write(line: string): void {
      // A UTF-16 code unit takes at most three bytes in UTF-8.
      if (line.length * 3 > LOG_LINE_BYTES_MAX) {
        passOn()
        sink.write(Buffer.from(line))
        return
      }
      blockBytes += block.write(line, blockBytes)
      if (blockBytes >= LOG_BLOCK_BYTES) passOn()
      else timer ??= setTimeout(passOn, LOG_FLUSH_MS).unref()
    },
    /** Writes what is still in memory, and waits for it. */
    flushSync(): void {
      passOn()
      sink.flushSync()
    },
  }
}

/** The file of the log. If its disk is full or the reader of its pipe is slow, a limited number of bytes waits, and more are dropped. */
export function logFile(fd: number): ByteSink {
  const waiting: Uint8Array[] = []
  let waitingBytes = 0
  let droppedBytes = 0
  let isBusy = false
  const waitAt = (end: 'start' | 'end', bytes: Uint8Array): void => {
    if (bytes.length === 0) return
    if (end === 'start') waiting.unshift(bytes)
    else waiting.push(bytes)
    waitingBytes += bytes.length
  }
  const takeNext = (): Uint8Array | undefined => {
    const next = waiting.shift()
    waitingBytes -= next?.length ?? 0
    return next
  }
  const writeNext = (): void => {
    const next = takeNext()
    isBusy = next !== undefined
    if (next === undefined) return
    write(fd, next, (error, byteCount) => {
      waitAt('start', error === null ? next.subarray(byteCount) : next)
      if (error === null) writeNext()
      else setTimeout(writeNext, LOG_RETRY_MS).unref()
    })
  }
  return {
    write(bytes) {
      if (waitingBytes + bytes.length > LOG_WAITING_BYTES_MAX) {
        droppedBytes += bytes.length
        logLosses.droppedBytes += bytes.length
        return
      }
      if (droppedBytes > 0) waitAt('end', droppedLine(droppedBytes))
      droppedBytes = 0
      waitAt('end', bytes)
      if (isBusy) return
      isBusy = true
      // Not at once, so that `flushSync` in the same turn writes these bytes itself.
      setImmediate(writeNext)
    },
    /** Writes what waits, and waits for that, unless it fails a few times in a row. */
    flushSync() {
      for (let failures = 0, next = takeNext(); next !== undefined; next = takeNext()) {
        try {
          waitAt('start', next.subarray(writeSync(fd, next)))
          failures = 0
        } catch {
          waitAt('start', next)
          failures += 1
          if (failures === LOG_FLUSH_TRIES) return
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOG_RETRY_MS)
        }
      }
    },
  }
}

function droppedLine(bytes: number): Uint8Array {
  const line = { level: 40, time: Date.now(), bytes, msg: 'lines were dropped: the log could not be written' }
  return Buffer.from(`${JSON.stringify(line)}\n`)
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

/**
 * Call `flushSync` of the destination before the exit.
 * @param isTerminal whether stderr is a terminal: then lines are written in readable form
 */
export function openLog(level: string, isTerminal: boolean) {
  const sink = lineBlocks(logFile(2))
  const destination = isTerminal
    ? { write: (line: string) => sink.write(readableLine(line)), flushSync: () => sink.flushSync() }
    : sink
  return { destination, logger: pino({ level, base: null }, destination) }
}
