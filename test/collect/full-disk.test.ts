// A full disk for each directory that a recorder writes to: recorded data stays correct, no lock stays held, and recording
// resumes by itself when there is space again.

import assert from 'node:assert/strict'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { recorderTask } from '../../server/collect/recorder-task.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { checkAgainst, eventually, readSeries, TEST_CREDENTIALS } from '../support/recorder-harness.ts'
import { onSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const MARKET = 'KXHIGHNY-26NOV20-B45.5'
const DISK_MIB = 4

/** Pauses of at most 50 ms. */
const CLOCK = {
  nowMs: () => Date.now(),
  sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
    await delay(Math.min(ms, 50), undefined, signal === undefined ? {} : { signal })
  },
}

interface World {
  readonly exchange: LocalKalshi
  readonly task: ReturnType<typeof recorderTask>
  readonly lake: string
  readonly errors: string[]
}

/** Records while `work` runs. */
async function recording(
  t: TestContext,
  lake: string,
  workDirectory: string,
  work: (world: World) => Promise<void>,
): Promise<void> {
  await mkdir(lake)
  const exchange = await LocalKalshi.start(t)
  exchange.markets.set(MARKET, 'active')
  exchange.setBook(MARKET, [[0, 40, 1000]])
  const errors: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line: string) => void errors.push(line) })
  const { socketUrl, restUrl } = exchange
  const config = {
    lake,
    workDirectory,
    userAgent: 'bookcast-test',
    kalshi: { series: ['KXHIGHNY'], credentials: TEST_CREDENTIALS, socketUrl, restUrl },
    polymarket: undefined,
  }
  const task = recorderTask({ recording: config, exchange: 'kalshi', logger, clock: CLOCK })
  const stopping = new AbortController()
  const running = task.run(stopping.signal)
  try {
    await work({ exchange, task, lake, errors })
  } finally {
    stopping.abort()
    await running
  }
}

/** Changes the book until `isReached`, if necessary more often than a small disk can hold. */
async function changeUntil({ exchange }: World, isReached: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(async () => {
    for (let change = 0; change < 20; change++) exchange.change(MARKET, 0, 40 + (change % 5), 100)
    return await isReached()
  }, 'what changes shall bring about')
}

const isRecorded = async ({ exchange, lake }: World): Promise<boolean> => {
  const rows = await readSeries(lake, 'kalshi', 'KXHIGHNY').catch(() => [])
  const { known, books } = checkAgainst(exchange, rows)
  return known > 0 && books.get(MARKET) !== undefined
}

/** Waits until new changes are recorded, and compares the recorded rows with the books of the exchange. */
async function recordsOn(world: World): Promise<void> {
  const { exchange, lake } = world
  const last = exchange.changes.size
  const later = [...exchange.changes.keys()].at(-1) ?? 0n
  await changeUntil(world, async () => {
    const rows = await readSeries(lake, 'kalshi', 'KXHIGHNY').catch(() => [])
    checkAgainst(exchange, rows)
    return rows.some((row) => row.event === 2 && row.seq > later)
  })
  assert.ok(exchange.changes.size > last)
}

test('with a full disk below the log, recording fails, is retried, and resumes once there is space', async (t) => {
  await onSmallDisk(t, DISK_MIB, async (disk) => {
    const lake = join(await temporaryDirectory(t), 'lake')
    await recording(t, lake, join(disk.path, 'work'), async (world) => {
      await fillAndFree(disk, world)
      const told = `the recorder's log ${join(disk.path, 'work', 'wal', 'kalshi')} cannot be written: its disk is full; free some space`
      assert.ok(world.errors.some((line) => line.includes(told)))
    })
  })
})

test('an error at the end of a recording is logged', async (t) => {
  const root = await temporaryDirectory(t)
  const work = join(root, 'work')
  let errors: readonly string[] = []
  await recording(t, join(root, 'lake'), work, async (world) => {
    errors = world.errors
    await eventually(() => world.task.recorderMetrics !== undefined, 'it records')
    await rename(work, join(root, 'moved'))
    await writeFile(work, 'in the place of a directory')
  })
  assert.match(errors.at(-1) ?? '', /ENOTDIR.*"msg":"cannot stop the recording"/)
})

test('with a full disk below the lake, the log keeps all messages until there is space', async (t) => {
  await onSmallDisk(t, DISK_MIB, async (disk) => {
    const lake = join(disk.path, 'lake')
    await recording(t, lake, join(await temporaryDirectory(t), 'work'), async (world) => {
      const { exchange, task } = world
      await changeUntil(world, () => isRecorded(world))
      await disk.fill()
      await changeUntil(world, () => (task.recorderMetrics?.foldFailures ?? 0) > 1)
      const heard = [...exchange.changes.keys()]
      await disk.free()
      await recordsOn(world)
      assert.equal(task.metrics.failureCount, 0, 'the exchange was heard all the time')
      const rows = await readSeries(lake, 'kalshi', 'KXHIGHNY')
      const seqs = new Set(rows.filter(({ event }) => event === 2).map(({ seq }) => seq))
      assert.deepEqual(
        heard.filter((seq) => !seqs.has(seq)),
        [],
      )
    })
  })
})

test('with log and lake on one full disk, recording resumes once there is space', async (t) => {
  await onSmallDisk(t, DISK_MIB, async (disk) => {
    const lake = join(disk.path, 'lake')
    await recording(t, lake, join(lake, '.recorder'), (world) => fillAndFree(disk, world))
  })
})

async function fillAndFree(disk: SmallDisk, world: World): Promise<void> {
  const { task, errors } = world
  await changeUntil(world, () => isRecorded(world))
  await disk.fill()
  await changeUntil(world, () => task.metrics.failureCount > 0)
  await eventually(() => task.metrics.runCount > 4, 'it is tried again and again')
  await disk.free()
  await recordsOn(world)
  await eventually(() => task.metrics.failureCount === 0, 'it no longer counts as failing')
  const refused = errors.filter((line) => line.includes('another recorder'))
  assert.deepEqual(refused, [])
}
