// Loaded before a program and before each of its threads (`node --expose-gc --import`): once an hour of its clock, at the same
// minute, each thread writes a JSON line to BENCH_HEAP_FILE with its memory after a garbage collection.

import { appendFileSync, readdirSync } from 'node:fs'
import { threadId } from 'node:worker_threads'

export interface HeldMemory {
  /** 0 is the main thread. */
  readonly thread: number
  readonly atMs: number
  readonly heapBytes: number
  readonly externalBytes: number
  readonly arrayBufferBytes: number
  /** Of the whole process. */
  readonly residentBytes: number
  readonly descriptors: number
}

const MS_PER_HOUR = 3_600_000
const MINUTE_MS = 50 * 60_000
const LOOK_MS = 100

const path = process.env['BENCH_HEAP_FILE']
if (path !== undefined) {
  const hourOf = (ms: number): number => Math.floor((ms - MINUTE_MS) / MS_PER_HOUR)
  let told = hourOf(Date.now())
  setInterval(() => {
    const hour = hourOf(Date.now())
    if (hour === told) return
    told = hour
    tell(path)
  }, LOOK_MS).unref()
}

function tell(file: string): void {
  // The second collection frees what the first one releases.
  for (let round = 0; round < 2; round++) globalThis.gc?.()
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
  const held: HeldMemory = {
    thread: threadId,
    atMs: Date.now(),
    heapBytes: heapUsed,
    externalBytes: external,
    arrayBufferBytes: arrayBuffers,
    residentBytes: rss,
    descriptors: readdirSync('/proc/self/fd').length,
  }
  appendFileSync(file, `${JSON.stringify(held)}\n`)
}
