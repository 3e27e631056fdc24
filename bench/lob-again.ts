// What the second reader of a day gets who finds it on disk: the same day from a server that keeps nothing, from one that
// has it, and the loopback interface with no work done for the bytes, in turns.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BenchLake } from './bench-lake.ts'
import { readStream } from './http-stream.ts'
import { drainMs } from './lob-end-to-end.ts'
import { lobTarget } from './lob-request.ts'
import { alternate, median } from './measure.ts'
import { readProcessCpuMs } from './process-status.ts'
import type { BenchReport, BenchSize } from './report.ts'
import { RowDigest } from './row-digest.ts'
import { type ChildServer, startBookcast, startLoopbackSource } from './server-process.ts'

const SIZES = {
  smoke: { markets: 5, deltas: 20_000, rounds: 1, warmUps: 0, loopbackBytes: 8 << 20 },
  full: { markets: 5, deltas: 2_000_000, rounds: 7, warmUps: 2, loopbackBytes: 1 << 30 },
} as const satisfies Record<BenchSize, object>
const LEVELS = 10

interface Reading {
  readonly totalMs: number
  readonly firstByteMs: number
  readonly bodyBytes: number
  readonly cpuMs: number
}

async function read({ address, pid }: ChildServer, target: string): Promise<Reading> {
  const before = (await readProcessCpuMs(pid)) ?? Number.NaN
  const { status, totalMs, firstByteMs, bodyBytes } = await readStream({ address, target })
  if (status !== 200) throw new Error(`status ${status} for ${target}`)
  return { totalMs, firstByteMs, bodyBytes, cpuMs: ((await readProcessCpuMs(pid)) ?? Number.NaN) - before }
}

async function digestOf({ address }: ChildServer, target: string): Promise<string> {
  const digest = new RowDigest()
  await readStream({ address, target, onBody: (bytes) => digest.addBytes(bytes) })
  return digest.hex()
}

export async function runAgain(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { markets, deltas, rounds, warmUps, loopbackBytes } = SIZES[size]
  const file = await lake.file(markets, deltas)
  const directory = await mkdtemp(join(tmpdir(), 'bookcast-bench-blocks-'))
  const source = await startLoopbackSource(loopbackBytes)
  const made = await startBookcast(file.lake)
  const kept = await startBookcast(file.lake, ['--block-cache', '4GB', '--block-cache-dir', directory])
  try {
    const target = lobTarget({ series: file.series, intervalS: 1, levels: LEVELS })
    const hashes = {
      'the first reading': await digestOf(kept, target),
      'the second': await digestOf(kept, target),
      'without a cache': await digestOf(made, target),
    }
    const drain = async (): Promise<Reading> => {
      const totalMs = await drainMs(source.address, loopbackBytes)
      return { totalMs, firstByteMs: 0, bodyBytes: loopbackBytes, cpuMs: 0 }
    }
    const [drains = [], makings = [], readings = []] = await alternate(rounds, warmUps, [
      drain,
      async () => read(made, target),
      async () => read(kept, target),
    ])
    const of = (samples: readonly Reading[], figure: keyof Reading): number =>
      median(samples.map((sample) => sample[figure]))
    const speed = (samples: readonly Reading[]): number => of(samples, 'bodyBytes') / of(samples, 'totalMs')
    return {
      benchmark: 'lob-again',
      size,
      figures: [
        { name: 'loopback, one stream', value: speed(drains) / 1000, unit: 'MB/s' },
        { name: 'a day made', value: of(makings, 'totalMs'), unit: 'ms' },
        { name: 'the same from disk', value: of(readings, 'totalMs'), unit: 'ms' },
        { name: 'first byte from disk', value: of(readings, 'firstByteMs'), unit: 'ms' },
        {
          name: 'share of loopback',
          value: (100 * speed(readings)) / speed(drains),
          unit: '%',
          atLeast: 70,
        },
        { name: 'server processor time, made', value: of(makings, 'cpuMs'), unit: 'ms' },
        { name: 'server processor time, from disk', value: of(readings, 'cpuMs'), unit: 'ms' },
        {
          name: 'share of processor time',
          value: (100 * of(readings, 'cpuMs')) / of(makings, 'cpuMs'),
          unit: '%',
          atMost: 20,
        },
      ],
      hashes,
      notes: [`one day, ${markets} markets, ${deltas} level changes, interval 1 s, ${LEVELS} levels, ndjson`],
    }
  } finally {
    await kept.stop()
    await made.stop()
    await source.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
