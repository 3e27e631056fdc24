// Locks of a data directory: of dead owners, of zombie processes, and of owners on another machine.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { lockRecorder } from '../../server/recorder/recorder-lock.ts'
import { DataDirectoryLock, DataDirectoryLocked } from '../../server/storage/data-directory-lock.ts'
import { eventually } from '../support/recorder-harness.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const IGNORE = (): void => {}

/** The content that a recorder on this machine writes into its lock. */
async function ownerNow(directory: string): Promise<Record<string, unknown>> {
  const lock = await lockRecorder(directory, IGNORE)
  const content = await readFile(join(directory, 'lock'), 'utf8')
  await lock.release()
  return JSON.parse(content) as Record<string, unknown>
}

test('a zombie process holds no lock', async (t) => {
  const directory = await temporaryDirectory(t)
  const owner = await ownerNow(directory)
  // The shell's child ends, and the process that the shell becomes never reaps it.
  const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'])
  t.after(() => parent.kill('SIGKILL'))
  const [line] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(line)
  const fields = async (): Promise<string[]> =>
    (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  await eventually(async () => (await fields())[0] === 'Z', 'the child is a zombie')
  const processStart = (await fields())[19]
  await writeFile(join(directory, 'lock'), JSON.stringify({ ...owner, pid, processStart }))
  const lock = await lockRecorder(directory, IGNORE)
  await lock.release()
})

test('a recorder on another machine holds its lock only as long as the lock has heartbeats', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'lock')
  const owner = await ownerNow(directory)
  const elsewhere: readonly Record<string, unknown>[] = [
    { ...owner, host: 'another-host', pid: 2 ** 22 + 1 },
    // Two containers with the same name.
    { ...owner, space: 'another namespace', pid: process.pid },
  ]
  for (const content of elsewhere) {
    await writeFile(path, JSON.stringify(content))
    let beats = 0
    const beat = setInterval(() => {
      beats += 1
      void utimes(path, new Date(), new Date())
    }, 300)
    const refusal = await lockRecorder(directory, IGNORE).then(
      () => undefined,
      (error: Error) => error.message,
    )
    clearInterval(beat)
    assert.match(
      refusal ?? 'taken',
      new RegExp(`another recorder, process ${String(content['pid'])} on ${String(content['host'])}`),
    )
    assert.ok(beats > 0)
  }
  const taken = await lockRecorder(directory, IGNORE)
  await taken.release()
  const old = new Date(Date.now() - 3_600_000)
  await writeFile(path, JSON.stringify(elsewhere[0]))
  await utimes(path, old, old)
  await (await lockRecorder(directory, IGNORE)).release()
})

test('a lock has heartbeats, and its owner is notified when it loses the lock', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'lock')
  let lost: Error | undefined
  const lock = await lockRecorder(directory, (error) => {
    lost = error
  })
  const content = await readFile(path, 'utf8')
  const old = new Date(Date.now() - 3_600_000)
  await utimes(path, old, old)
  await eventually(async () => (await stat(path)).mtimeMs > old.getTime(), 'the lock is written again')
  assert.equal(await readFile(path, 'utf8'), content)
  assert.equal(lost, undefined)
  await rm(path)
  await writeFile(path, '{"pid":1,"host":"elsewhere"}')
  await eventually(() => lost !== undefined, 'the owner is told')
  await lock.release()
  assert.match(await readFile(path, 'utf8'), /elsewhere/)
})

test('a thread whose lock another thread of its process took over does not release the new lock', async (t) => {
  const directory = await temporaryDirectory(t)
  const acquire = (): Promise<DataDirectoryLock> =>
    DataDirectoryLock.acquire(directory, join(directory, 'none.sock'), IGNORE, { isOfThread: true })
  const first = await acquire()
  await rm(join(directory, 'lock'))
  const second = await acquire()
  await first.release()
  await assert.rejects(acquire(), DataDirectoryLocked)
  await second.release()
  assert.deepEqual(await entriesBelow(directory), [])
})

test('a lock that fails on a full disk leaves no files', async (t) => {
  await onSmallDisk(t, 1, async (disk) => {
    await disk.fill()
    await assert.rejects(DataDirectoryLock.acquire(disk.path, ''), { code: 'ENOSPC' })
    assert.deepEqual(await entriesBelow(disk.path), ['.filler'])
  })
})

test('files of a process that was killed while it took the lock are removed after a day', async (t) => {
  const directory = await temporaryDirectory(t)
  const [old, young] = [randomUUID(), randomUUID()].map((id) => join(directory, `lock.${id}`))
  for (const path of [old!, young!]) await writeFile(path, '{}')
  const before = new Date(Date.now() - 25 * 3_600_000)
  await utimes(old!, before, before)
  const lock = await lockRecorder(directory, IGNORE)
  await lock.release()
  assert.deepEqual(await entriesBelow(directory), [basename(young!)])
})
