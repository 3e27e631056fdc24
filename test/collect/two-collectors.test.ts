// Two collectors of one series push to one place: when both have ended, it has everything that either has recorded.

import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { type Collection, startCollection } from '../../server/collect/collection.ts'
import type { IngestConfig } from '../../server/ingest/ingest-config.ts'
import { rawDates, readManifest, segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { readSegment } from '../../server/raw/segment-reader.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { eventually, TEST_CREDENTIALS } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { startWorld, WORLD_STATIONS } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const MARKET = 'KXHIGHNY-26NOV20-B45.5'

test('all messages that a collector received are pushed, even if it has just merged with another collector', async (t) => {
  const root = await temporaryDirectory(t)
  const remote = join(root, 'remote')
  await mkdir(remote)
  const { config: ingest } = await startWorld(t)
  const collectors: Collector[] = []
  for (const name of ['first', 'second']) {
    // Each has its own exchange: a second connection to one would continue its numbers, while the real exchange starts at 1.
    const exchange = await LocalKalshi.start(t)
    exchange.markets.set(MARKET, 'active')
    exchange.setBook(MARKET, [[0, 40, 1000]])
    const collector = new Collector(exchange, ingest, join(root, name), remote)
    t.after(() => collector.stop())
    collectors.push(collector)
    await eventually(() => collector.frames > 1, `${name} listens`)
  }
  await eventually(async () => (await recordersIn(remote)).size === 2, 'one has folded the segments of both')
  for (const collector of collectors) {
    await Promise.all(collectors.map((one) => one.change()))
    await collector.stop()
  }
  // On a busy machine the last push of either may leave the fold to the next push.
  for (const name of ['first', 'second'])
    await syncLake({ lake: join(root, name), remote: new DirectoryStore(remote), direction: 'push' })
  const sent = collectors.reduce((sum, { sentFrames }) => sum + sentFrames, 0)
  let frames = 0
  for (const date of await rawDates(remote, 'kalshi')) {
    const names = await segmentsOnDisk(remote, 'kalshi', date)
    const listed = (await readManifest(remote, 'kalshi', date))?.segments.map(({ name }) => name)
    assert.deepEqual(listed, names, 'every segment is folded')
    for (const name of names)
      for await (const lines of readSegment(join(rawDateDirectory(remote, 'kalshi', date), name)))
        frames += lines.filter(({ kind }) => kind === 'frames').length
  }
  assert.ok(frames >= sent, `${frames} frames of ${sent} are in object storage`)
})

class Collector {
  readonly #collection: Collection
  readonly #exchange: LocalKalshi
  #ended: Promise<boolean> | undefined

  constructor(exchange: LocalKalshi, ingest: IngestConfig, lake: string, remote: string) {
    this.#exchange = exchange
    const { socketUrl, restUrl } = exchange
    const kalshi = { series: ['KXHIGHNY'], credentials: TEST_CREDENTIALS, socketUrl, restUrl }
    this.#collection = startCollection({
      config: {
        ingest,
        names: ['climate-nws'],
        recording: { lake, workDirectory: `${lake}-work`, userAgent: 'bookcast-test', kalshi },
        compaction: null,
        push: { lake, to: remote, settings: {}, intervalMs: 400, raw: true },
      },
      postgres: file.store.postgres,
      logger: pino({ level: 'silent' }),
      stations: WORLD_STATIONS,
    })
  }

  get sentFrames(): number {
    return this.#exchange.sentFrames
  }

  get frames(): number {
    return this.#collection.metrics().recorders[0]?.frames ?? 0
  }

  stop(): Promise<boolean> {
    return (this.#ended ??= this.#collection.stop())
  }

  /** Changes the book and waits until the collector has received it, unless the collector has ended. */
  async change(): Promise<void> {
    const before = this.frames
    if (!this.#exchange.isFollowed(MARKET)) return
    this.#exchange.change(MARKET, 0, 50, 100)
    await eventually(() => this.frames > before, 'it is heard')
  }
}

/** The recorders whose segments a manifest lists. */
async function recordersIn(directory: string): Promise<Set<string>> {
  const found = new Set<string>()
  for (const date of await rawDates(directory, 'kalshi'))
    for (const { name } of (await readManifest(directory, 'kalshi', date))?.segments ?? [])
      found.add(name.slice(0, name.indexOf('-')))
  return found
}
