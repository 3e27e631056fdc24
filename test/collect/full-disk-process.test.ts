// A full disk below the data directory of the embedded store, and below the directory for temporary files, with the real
// process that collects and serves: it warns before the disk is full, serves nothing wrong meanwhile, and resumes by itself
// once there is space.

import assert from 'node:assert/strict'
import { cp, mkdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type CollectingProcess, soon, startCollecting } from '../support/collecting-process.ts'
import { type CollectingWorld, startCollectingWorld } from '../support/collecting-world.ts'
import { inFullGear } from '../support/effort.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { onSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { metarEntry } from '../support/upstream-world.ts'

const MARKET = 'KXHIGHNY-26NOV20-B45.5'
const DATA_MIB = 192
const TEMPORARY_MIB = 4
/** The free share of a disk that is nearly full. */
const LOW_SHARE = 0.06
const MINUTE_MS = 60_000
/** More than fit into the store's existing pages, but few enough that the live feed takes the response as complete. */
const MANY = 300

/** Adds ever more reports to the test world, one for each minute into the past. */
class Reports {
  readonly #world: CollectingWorld
  readonly #startMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
  readonly told = new Set<string>()

  constructor(world: CollectingWorld) {
    this.#world = world
    world.rest.entries = []
  }

  tell(count: number): void {
    const more = Array.from({ length: count }, (_, index) => {
      const ms = this.#startMs - (this.told.size + index) * MINUTE_MS
      return metarEntry('KNYC', new Date(ms).toISOString())
    })
    for (const entry of more) this.told.add(String(entry['rawOb']))
    this.#world.rest.entries = [...this.#world.rest.entries, ...more]
  }
}

/** The reports that are served; undefined on 503. */
async function served({ url }: CollectingProcess, reports: Reports): Promise<Set<string> | undefined> {
  const day = (ms: number): string => new Date(Date.now() + ms).toISOString().slice(0, 10)
  const span = `from=${day(-2 * 86_400_000)}&to=${day(86_400_000)}`
  const path = `/api/v1/observations?station=NYC&${span}&columns=raw_metar&format=ndjson`
  const response = await fetch(url + path)
  const text = await response.text()
  if (response.status === 503) return undefined
  assert.equal(response.status, 200, text)
  const rows = text.split('\n').filter((line) => line !== '')
  const found = rows.map((line) => (JSON.parse(line) as { raw_metar: string }).raw_metar)
  assert.equal(new Set(found).size, found.length, 'each is there once')
  for (const report of found) assert.ok(reports.told.has(report), `nobody has told ${report}`)
  return new Set(found)
}

/** Resolves when exactly the reports of the test world are served. */
async function servesAll(collecting: CollectingProcess, reports: Reports): Promise<void> {
  await soon(
    async () => (await served(collecting, reports))?.size === reports.told.size,
    async () =>
      `${(await served(collecting, reports))?.size} of ${reports.told.size}: ${collecting.output().slice(0, 3000)}`,
  )
}

/** The current best bid of the market that the server returns. */
async function bestBid({ url }: CollectingProcess): Promise<number | undefined> {
  const now = new Date()
  const query = `date=${now.toISOString().slice(0, 10)}&hour=${now.getUTCHours()}&interval=1&columns=ts,best_bid`
  const response = await fetch(`${url}/api/v1/lob?market=${MARKET}&${query}&format=ndjson`)
  const text = await response.text()
  if (response.status !== 200) return undefined
  const last = text.trimEnd().split('\n').at(-1) ?? ''
  return last === '' ? undefined : (JSON.parse(last) as { best_bid: number }).best_bid
}

/** Waits until a change of the book is served, which shows that the recorder works. */
async function recordsOn(
  world: CollectingWorld,
  collecting: CollectingProcess,
  cents: number,
): Promise<void> {
  world.feed.change(MARKET, 0, cents, 700)
  await soon(
    async () => (await bestBid(collecting)) === cents,
    () => `the change to ${cents} is not served: ${collecting.output().slice(0, 3000)}`,
  )
}

/** Leaves a little space on the disk, and waits for the warning and the metric. */
async function isToldBefore(disk: SmallDisk, collecting: CollectingProcess, place: string): Promise<void> {
  const most = join(disk.path, 'most-of-it')
  const free = (await collecting.metric(`bookcast_disk_free_bytes{place="${place}"}`)) ?? 0
  const size = (await collecting.metric(`bookcast_disk_size_bytes{place="${place}"}`)) ?? 0
  assert.ok(free > size * LOW_SHARE, `${free} of ${size} bytes are free`)
  await writeFile(most, Buffer.alloc(free - Math.ceil(size * LOW_SHARE)))
  await soon(
    async () => (await collecting.metric(`bookcast_disk_low{place="${place}"}`)) === 1,
    () => `nothing says that the disk is nearly full: ${collecting.output()}`,
  )
  const told = new RegExp(`"place":"${place}",.*"the disk is nearly full"`)
  await soon(
    async () => told.test(collecting.output()),
    () => `the log says nothing of it: ${collecting.output()}`,
  )
  assert.equal(await failing(collecting, 'aviation-weather'), 0, 'it is told before anything fails')
}

async function makeRoom(disk: SmallDisk): Promise<void> {
  await truncate(join(disk.path, 'most-of-it'), 0)
  await disk.free()
}

function failing(collecting: CollectingProcess, task: string): Promise<number | undefined> {
  return collecting.metric(`bookcast_collect_failures_in_row{task="${task}"}`)
}

async function startWorld(...arguments_: Parameters<typeof startCollectingWorld>) {
  const world = await startCollectingWorld(...arguments_)
  world.feed.markets.set(MARKET, 'active')
  world.feed.setBook(MARKET, [
    [0, 40, 1000],
    [1, 90, 1000],
  ])
  const reports = new Reports(world)
  reports.tell(5)
  return { world, reports }
}

test('with a full disk below the embedded store nothing wrong is served, and all rows are served once there is space', async (t) => {
  const { world, reports } = await startWorld(t)
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  await onSmallDisk(t, DATA_MIB, async (disk) => {
    const data = join(disk.path, 'data')
    await cp(place.dataDirectory, data, { recursive: true })
    const env = {
      BOOKCAST_DATA_DIR: data,
      BOOKCAST_AVIATION_WEATHER_INTERVAL_MS: '1000',
      BOOKCAST_ARCHIVES_INTERVAL_MS: '1000',
      DATABASE_URL: '',
    }
    const collecting = await startCollecting(t, world, env)
    await servesAll(collecting, reports)
    await isToldBefore(disk, collecting, 'data')
    reports.tell(5)
    await servesAll(collecting, reports)

    await disk.fill()
    const before = reports.told.size
    reports.tell(MANY)
    await soon(
      async () => ((await failing(collecting, 'aviation-weather')) ?? 0) > 1,
      () => `nothing fails on a full disk: ${collecting.output()}`,
    )
    const meanwhile = await served(collecting, reports)
    assert.ok(meanwhile === undefined || meanwhile.size >= before, 'what was there is there')
    await recordsOn(world, collecting, 55)

    await makeRoom(disk)
    await servesAll(collecting, reports)
    for (const task of ['aviation-weather', 'exchange-catalogue', 'climate-nws', 'iem', 'ncei'])
      await soon(
        async () => (await failing(collecting, task)) === 0,
        () => `${task} does not go on: ${collecting.output().slice(-3000)}`,
      )
    await soon(
      async () => (await collecting.metric('bookcast_disk_low{place="data"}')) === 0,
      () => 'the disk has room again',
    )
    await recordsOn(world, collecting, 56)
    await collecting.stop()
  })
})

const temporaryTitle = 'a full disk below the temporary files: it is told, and collecting and serving go on'
test(temporaryTitle, { skip: inFullGear }, async (t) => {
  const { world, reports } = await startWorld(t)
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  await onSmallDisk(t, TEMPORARY_MIB, async (disk) => {
    const temporary = join(disk.path, 'temporary')
    await mkdir(temporary)
    const env = { BOOKCAST_DATA_DIR: place.dataDirectory, TMPDIR: temporary, DATABASE_URL: '' }
    const collecting = await startCollecting(t, world, {
      ...env,
      BOOKCAST_AVIATION_WEATHER_INTERVAL_MS: '1000',
    })
    await servesAll(collecting, reports)
    await isToldBefore(disk, collecting, 'temporary')
    await disk.fill()
    reports.tell(MANY)
    await servesAll(collecting, reports)
    await recordsOn(world, collecting, 55)
    await makeRoom(disk)
    await recordsOn(world, collecting, 56)
    await collecting.stop()
  })
})
