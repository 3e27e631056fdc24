// Runs the recorder for several hours without a kill, on a fast clock, and records its memory hour by hour.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MS_PER_DAY, MS_PER_HOUR } from '../shared/utc-date.ts'
import { benchClock } from './bench-clock.ts'
import type { HeldMemory } from './heap-probe.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { compareLake } from './soak-compare.ts'
import { SoakExchange } from './soak-exchange.ts'
import { SoakProcess } from './soak-process.ts'

export interface SoakHours {
  /** By the recorder's clock. */
  readonly hours: number
  /** Changes of the exchange per second of the machine's clock. */
  readonly perSecond: number
}

/** At this speed, the clock still ticks several times within the recorder's limits for pauses and late messages. */
const SPEED = 12
/** The first hour begins this long after midnight, so that most hours are of one date. */
const FIRST_MINUTES = 30
const PLENTY: SoakHours = { hours: 5, perSecond: 2_000 }
const LITTLE: SoakHours = { hours: 1.5, perSecond: 500 }
const SERIES = ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHMIA', 'KXHIGHAUS']
const MARKETS_PER_SERIES = 6
const LOOK_MS = 1_000
const CATCH_UP_MS_MAX = 10 * 60_000

/** @param changed overrides hours or rate of the size */
export async function runSoakHours(size: BenchSize, changed: Partial<SoakHours>): Promise<BenchReport> {
  const { hours, perSecond } = { ...(size === 'full' ? PLENTY : LITTLE), ...changed }
  const root = await mkdtemp(join(tmpdir(), 'bookcast-soak-hours-'))
  const fromMs = Date.now()
  const shiftMs = FIRST_MINUTES * 60_000 - (fromMs % MS_PER_DAY)
  const clock = { shiftMs, speed: SPEED, fromMs }
  const markets = SERIES.flatMap((series) =>
    Array.from({ length: MARKETS_PER_SERIES }, (_, index) => `${series}-26NOV20-B${40 + index}.5`),
  )
  const exchange = await SoakExchange.start(markets, benchClock(clock))
  const { socketUrl, restUrl } = exchange
  const heapFile = join(root, 'heap.jsonl')
  const recorder = new SoakProcess({ root, series: SERIES, socketUrl, restUrl, clock, heapFile })
  const ended = new AbortController()
  try {
    recorder.start()
    const trading = exchange.trade(perSecond, ended.signal)
    for (const endMs = performance.now() + (hours * MS_PER_HOUR) / SPEED; performance.now() < endMs;) {
      await recorder.sample()
      await sleep(LOOK_MS)
    }
    ended.abort()
    await trading
    while (exchange.unsentBytes > 0) await sleep(LOOK_MS)
    await recorder.caughtUp(CATCH_UP_MS_MAX)
    await recorder.end('SIGTERM')
    const { rows, differentRows, missingRows, unknownRows, told } = await compareLake(
      recorder.lake,
      exchange.truth,
    )
    const held = await readHeld(heapFile)
    const figures: Figure[] = [
      { name: 'rows', value: rows, unit: '' },
      { name: 'rows that differ', value: differentRows, unit: '', atMost: 0 },
      { name: 'rows missing within a connection', value: missingRows, unit: '', atMost: 0 },
      { name: 'rows with an unknown book', value: unknownRows, unit: '' },
      ...held.map(({ thread, hourly }) => {
        const growth = (hourly.at(-1)!.heapBytes - hourly[0]!.heapBytes) / 1e6 / (hourly.length - 1)
        return { name: `heap of thread ${thread}, growth`, value: growth, unit: 'MB/h' }
      }),
    ]
    const notes = held.flatMap(({ hourly }) => hourly.map(lineOf))
    return { benchmark: 'soak-hours', size, figures, hashes: {}, notes: [...notes, ...told] }
  } finally {
    ended.abort()
    await recorder.end('SIGKILL')
    exchange.close()
    await rm(root, { recursive: true, force: true })
  }
}

/** The recorded memory by thread. The first hour includes the start. */
async function readHeld(path: string) {
  const text = await readFile(path, 'utf8').catch(() => '')
  const all = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HeldMemory)
  const threads = [...new Set(all.map(({ thread }) => thread))].toSorted((a, b) => a - b)
  return threads
    .map((thread) => ({ thread, hourly: all.filter((each) => each.thread === thread) }))
    .filter(({ hourly }) => hourly.length > 1)
}

function lineOf(held: HeldMemory): string {
  const [heap, external, buffers, resident] = [
    held.heapBytes,
    held.externalBytes,
    held.arrayBufferBytes,
    held.residentBytes,
  ].map((bytes) => (bytes / 1e6).toFixed(1))
  const time = new Date(held.atMs).toISOString().slice(5, 16)
  const memory = `heap ${heap} MB, external ${external} MB (buffers ${buffers} MB)`
  return `${time} thread ${held.thread}: ${memory}; process ${resident} MB, ${held.descriptors} descriptors`
}
