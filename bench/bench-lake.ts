// The lakes that benchmarks read: generated once per run into a temporary directory, from a fixed seed.

import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateBenchmarkLake } from '../server/sample-data/benchmark-lake.ts'
import { lobFilePath } from '../shared/lake-layout.ts'

export const BENCH_DATE = '2026-07-01'
export const BENCH_DATE_START_MS = Date.UTC(2026, 6, 1)
const SEED = 1

export interface BenchFile {
  readonly lake: string
  readonly series: string
  readonly path: string
  readonly markets: number
  readonly deltas: number
  readonly sizeBytes: number
}

/** Makes the benchmark files of one lake, each at most once. */
export class BenchLake {
  readonly lake: string
  readonly #files = new Map<string, Promise<BenchFile>>()

  private constructor(lake: string) {
    this.lake = lake
  }

  static async create(): Promise<BenchLake> {
    return new BenchLake(await mkdtemp(join(tmpdir(), 'bookcast-bench-')))
  }

  /** One date of one series with the given numbers of markets and level changes. */
  async file(markets: number, deltas: number): Promise<BenchFile> {
    const series = `KXBENCH${markets}X${deltas}`
    const known = this.#files.get(series)
    if (known !== undefined) return await known
    const made = this.#make(series, markets, deltas)
    this.#files.set(series, made)
    return await made
  }

  async remove(): Promise<void> {
    await rm(this.lake, { recursive: true, force: true })
  }

  async #make(series: string, markets: number, deltas: number): Promise<BenchFile> {
    const { lake } = this
    await generateBenchmarkLake({ lake, series, date: BENCH_DATE, markets, deltas, seed: SEED })
    const path = lobFilePath(lake, 'kalshi', series, BENCH_DATE)
    return { lake, series, path, markets, deltas, sizeBytes: (await stat(path)).size }
  }
}
