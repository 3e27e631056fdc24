import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { open, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { derivedKey, recordFileName } from '../../shared/lake-layout.ts'
import { SYNC_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { bytesOf, readTree, type Tree, writeTree } from '../support/lake-tree.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const BOOK = 'lob/source=kalshi/series=KXHIGHNY/date=2026-07-01/lob.parquet'
const CANDLES = 'candles/series=KXHIGHNY/month=2026-07/candles.parquet'
const TREE: Tree = {
  [BOOK]: bytesOf(3_000_000),
  [CANDLES]: bytesOf(50_000, 2),
  'observations/station=NYC/year=2026/observations.parquet': bytesOf(1, 3),
}
/** Retries without waiting. */
const CLOCK = { nowMs: () => Date.now(), sleep: async () => {} }

test('push, then pull into an empty directory gives the same tree', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  const result = await pull(server, copy)
  assert.equal(result.transferredCount, 3)
  assert.deepEqual(await readTree(copy), await readTree(lake))
  assert.deepEqual(await temporaries(copy), [])
})

test('a prefix is a separate destination', async (t) => {
  const { server, lake } = await pushedLake(t)
  const other = await temporaryDirectory(t)
  await writeTree(other, { [CANDLES]: 'other' })
  await syncLake({ lake: other, remote: server.store('a/b'), direction: 'push', clock: CLOCK })
  const copies = [await temporaryDirectory(t), await temporaryDirectory(t)] as const
  await syncLake({ lake: copies[0], remote: server.store('a/b'), direction: 'pull', clock: CLOCK })
  assert.deepEqual(await readTree(copies[0]), await readTree(other))
  await syncLake({ lake: copies[1], remote: server.store('a'), direction: 'pull', clock: CLOCK })
  assert.deepEqual(Object.keys(await readTree(copies[1])), [])
  assert.equal((await readTree(lake))[CANDLES]?.length, 50_000)
})

test('files that are up to date are neither read nor transferred again', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await pull(server, copy)
  server.requests.length = 0
  assert.equal((await pull(server, copy)).transferredCount, 0)
  assert.equal((await push(server, lake)).transferredCount, 0)
  assert.deepEqual(
    server.requests.map(({ method, isList }) => ({ method, isList })),
    [
      { method: 'GET', isList: true },
      { method: 'GET', isList: true },
    ],
  )
})

test('only changed files are transferred, in both directions', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await pull(server, copy)
  await writeTree(lake, {
    [CANDLES]: bytesOf(60_000, 9),
    'lob/source=kalshi/series=A/date=2026-07-02/lob.parquet': 'new',
  })
  assert.equal((await push(server, lake)).transferredCount, 2)
  server.requests.length = 0
  assert.equal((await pull(server, copy)).transferredCount, 2)
  assert.equal(gets(server).length, 2)
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('a lake that was copied by other means is adopted without a transfer', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await writeTree(copy, await readTree(lake))
  server.requests.length = 0
  assert.equal((await pull(server, copy)).transferredCount, 0)
  assert.equal(gets(server).length, 0)
  await writeTree(lake, { [CANDLES]: 'newer' })
  await push(server, lake)
  const result = await pull(server, copy)
  assert.deepEqual(result.conflicts, [])
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('a body that ends early is resumed where it stopped', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  server.requests.length = 0
  server.fault = once(BOOK, { cutAfterBytes: 1_000_000 })
  let netBytes = 0
  const progress = { onBytes: (count: number) => (netBytes += count) }
  const result = await pull(server, copy, { progress })
  assert.equal(result.failures.length, 0)
  const ranges = gets(server)
    .filter(({ key }) => key === BOOK)
    .map(({ range }) => range)
  assert.equal(ranges.length, 2)
  assert.equal(ranges[0], undefined)
  assert.match(ranges[1] ?? '', /^bytes=[1-9]\d*-$/)
  assert.ok(Number(/\d+/.exec(ranges[1] ?? '')?.[0]) <= 1_000_000)
  assert.deepEqual(await readTree(copy), await readTree(lake))
  assert.equal(netBytes, 3_050_001)
})

test('an interrupted run leaves no partial file visible, and the next run resumes it', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  const controller = new AbortController()
  const reason = new Error('stopped')
  let seenBytes = 0
  const progress = {
    onBytes(count: number) {
      seenBytes += count
      if (seenBytes > 500_000) controller.abort(reason)
    },
  }
  await assert.rejects(pull(server, copy, { progress, signal: controller.signal, parallel: 1 }), reason)
  assert.equal((await readTree(copy))[BOOK], undefined)
  server.requests.length = 0
  await pull(server, copy)
  const again = gets(server).filter(({ key }) => key === BOOK)
  assert.equal(again.length, 1)
  assert.match(again[0]?.range ?? '', /^bytes=[1-9]\d*-$/)
  assert.deepEqual(await readTree(copy), await readTree(lake))
  assert.deepEqual(await temporaries(copy), [])
})

test('on a full disk the error names the directory and the remedy, and the next run completes the lake', async (t) => {
  const { server, lake } = await pushedLake(t)
  await onSmallDisk(t, 4, async (disk) => {
    await disk.fill()
    await disk.free(1024 * 1024)
    const { failures } = await pull(server, disk.path)
    const reason = `the directory ${disk.path} cannot be written: its disk is full; free some space and run it again (ENOSPC)`
    assert.deepEqual(failures, [{ key: BOOK, reason }])
    assert.equal((await readTree(disk.path))[BOOK], undefined)
    await disk.free()
    assert.deepEqual((await pull(server, disk.path)).failures, [])
    assert.deepEqual(await readTree(disk.path), await readTree(lake))
  })
})

test('an object that arrives with a wrong byte is fetched again from the start', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  server.fault = once(BOOK, { wrongByte: 12_345 })
  assert.deepEqual((await pull(server, copy)).failures, [])
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('an object that repeatedly arrives damaged is reported, not published, and does not block other objects', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await pull(server, copy)
  const before = await readTree(copy)
  await writeTree(lake, { [BOOK]: bytesOf(200_000, 5), [CANDLES]: 'newer' })
  await push(server, lake)
  server.requests.length = 0
  server.fault = ({ method, key }) => (method === 'GET' && key === BOOK ? { wrongByte: 7 } : undefined)
  const result = await pull(server, copy)
  assert.equal(result.failures.length, 1)
  assert.match(result.failures[0]?.reason ?? '', /arrived damaged: SHA-256/)
  assert.equal(gets(server).filter(({ key }) => key === BOOK).length, SYNC_ATTEMPTS_MAX)
  const after = await readTree(copy)
  assert.deepEqual(after[BOOK], before[BOOK])
  assert.equal(after[CANDLES]?.toString(), 'newer')
  server.fault = () => undefined
  await pull(server, copy)
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('server errors are retried, in both directions', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  const errorCounts = new Map<string, number>()
  server.fault = ({ isList, method, key }) => {
    const count = (errorCounts.get(`${method} ${key}`) ?? 0) + 1
    errorCounts.set(`${method} ${key}`, count)
    return !isList && count <= 2 ? { status: 503 } : undefined
  }
  assert.deepEqual((await pull(server, copy)).failures, [])
  await writeTree(lake, { [CANDLES]: 'newer' })
  assert.deepEqual((await push(server, lake)).failures, [])
  server.fault = () => undefined
  await pull(server, copy)
  assert.deepEqual(await readTree(copy), await readTree(lake))
  assert.ok((errorCounts.get(`PUT ${CANDLES}`) ?? 0) > 2)
})

test('a service that refuses every object is reported by name, and the outcome file is not written', async (t) => {
  const { server } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  server.fault = ({ isList }) => (isList ? undefined : { status: 403 })
  const result = await pull(server, copy)
  assert.deepEqual(
    result.failures.map(({ key }) => key),
    Object.keys(TREE).toSorted(),
  )
  assert.match(result.failures[0]?.reason ?? '', /^s3:\/\/lake: HTTP 403/)
  assert.deepEqual(await readTree(copy), {})
  await assert.rejects(stat(join(copy, '.sync', 'outcome.json')))
})

test('an object that is replaced during its transfer arrives in its new version', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await writeTree(lake, { [BOOK]: bytesOf(100_000, 77) })
  let isReplaced = false
  const remote = server.store()
  const get = remote.get.bind(remote)
  remote.get = async (object, offset, signal) => {
    if (object.key === BOOK && !isReplaced) {
      isReplaced = true
      await push(server, lake)
    }
    return get(object, offset, signal)
  }
  const result = await syncLake({ lake: copy, remote, direction: 'pull', clock: CLOCK })
  assert.deepEqual(result.failures, [])
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('a file is replaced atomically, and open readers keep reading the old one', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await pull(server, copy)
  const old = (await readTree(copy))[BOOK]
  await writeTree(lake, { [BOOK]: bytesOf(2_000_000, 8) })
  await push(server, lake)
  const reader = await open(join(copy, BOOK))
  t.after(() => reader.close())
  let checkCount = 0
  const onBytes = (): void => {
    checkCount += 1
    assert.ok(old !== undefined && readFileSync(join(copy, BOOK)).equals(old))
  }
  const { failures } = await pull(server, copy, { progress: { onBytes } })
  assert.deepEqual(failures, [])
  assert.ok(checkCount > 2)
  assert.deepEqual(await reader.readFile(), old)
  assert.deepEqual((await readTree(copy))[BOOK], bytesOf(2_000_000, 8))
})

test('nothing is deleted, and files of another writer are replaced only with --replace', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  const own = 'observations/station=CHI/year=2026/observations.parquet'
  await writeTree(copy, { [CANDLES]: 'mine', [own]: 'mine too' })
  assert.deepEqual((await pull(server, copy)).conflicts, [CANDLES])
  const kept = await readTree(copy)
  assert.deepEqual([String(kept[CANDLES]), String(kept[own])], ['mine', 'mine too'])
  await rm(join(lake, BOOK))
  assert.deepEqual((await push(server, lake)).conflicts, [])
  assert.deepEqual((await pull(server, copy, { replace: true })).conflicts, [])
  const after = await readTree(copy)
  assert.deepEqual(after[CANDLES], TREE[CANDLES])
  assert.deepEqual(after[BOOK], TREE[BOOK])
  assert.equal(String(after[own]), 'mine too')
})

test('a collector that lost its state does not replace files that others pushed', async (t) => {
  const { server } = await pushedLake(t)
  const fresh = await temporaryDirectory(t)
  await writeTree(fresh, { [BOOK]: 'half a day' })
  assert.deepEqual((await push(server, fresh)).conflicts, [BOOK])
  const copy = await temporaryDirectory(t)
  await pull(server, copy)
  assert.deepEqual((await readTree(copy))[BOOK], TREE[BOOK])
})

test('after a kill behind the rename, the next run recognizes the file as its own', async (t) => {
  const { server, lake } = await pushedLake(t)
  const copy = await temporaryDirectory(t)
  await pull(server, copy)
  // The journal's last lines were not written to disk: it lists the transfers as begun, not as done.
  const [journal] = (await readdir(join(copy, '.sync'))).filter((name) => name.endsWith('.ndjson'))
  const path = join(copy, '.sync', journal ?? '')
  const begun = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"targetVersion":null'))
  assert.equal(begun.length, 3)
  await writeFile(path, `${begun.join('\n')}\n{"key":"cut off`)
  await writeTree(lake, { [BOOK]: 'newer' })
  await push(server, lake)
  assert.deepEqual((await pull(server, copy)).conflicts, [])
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('temporary files and files that are not part of the lake are not pushed', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  await writeTree(lake, {
    [CANDLES]: 'rows',
    'candles/series=A/.month=2026-07.parquet.0123456789ab.tmp': 'part',
    'candles/.hidden/month=2026-07/candles.parquet': 'hidden',
    'notes.txt': 'text',
    'totals.parquet': 'of somebody',
    // Files of an export, beside and in the lake's directories.
    [`exports/july/${BOOK.replace('.parquet', '-0123456789abcdef.parquet')}`]: 'part',
    [`exports/july/${BOOK}`]: 'part',
    [BOOK.replace('.parquet', '-0123456789abcdef.parquet')]: 'part',
  })
  const result = await push(server, lake)
  assert.deepEqual([result.objectCount, result.transferredCount], [1, 1])
})

test('any tree is copied completely between directories, with any names of series and any content', async (t) => {
  const scope = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,12}$/)
  const key = fc
    .tuple(fc.constantFrom('lob', 'trades', 'candles', 'observations'), scope)
    .map(([dataset, name]) =>
      dataset === 'lob' || dataset === 'trades'
        ? derivedKey(dataset, 'kalshi', name, '2026-07-01')
        : recordFileName(dataset, name, dataset === 'candles' ? '2026-07' : '2026'),
    )
  const content = fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes))
  await fc.assert(
    fc.asyncProperty(fc.dictionary(key, content, { maxKeys: 8 }), async (tree) => {
      const [lake, remote, copy] = [
        await temporaryDirectory(t),
        new DirectoryStore(await temporaryDirectory(t)),
        await temporaryDirectory(t),
      ]
      await writeTree(lake, tree)
      await syncLake({ lake, remote, direction: 'push' })
      await syncLake({ lake: copy, remote, direction: 'pull' })
      assert.deepEqual(await readTree(copy), await readTree(lake))
      assert.deepEqual(Object.keys(await readTree(lake)).length, Object.keys(tree).length)
    }),
    { numRuns: 15 },
  )
})

test('a source that does not exist is an error, not an empty lake', async (t) => {
  const lake = await temporaryDirectory(t)
  const remote = new DirectoryStore(join(await temporaryDirectory(t), 'typo'))
  const reason = /^Error: the directory \S+typo cannot be read: it or a directory above it does not exist/
  await assert.rejects(syncLake({ lake, remote, direction: 'pull' }), reason)
})

async function pushedLake(t: TestContext): Promise<{ server: S3Server; lake: string }> {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  await writeTree(lake, TREE)
  const result = await push(server, lake)
  assert.deepEqual([result.transferredCount, result.failures], [3, []])
  return { server, lake }
}

function push(server: S3Server, lake: string): Promise<LakeSyncResult> {
  return syncLake({ lake, remote: server.store(), direction: 'push', clock: CLOCK })
}

function pull(
  server: S3Server,
  lake: string,
  options: Partial<LakeSyncOptions> = {},
): Promise<LakeSyncResult> {
  return syncLake({ lake, remote: server.store(), direction: 'pull', clock: CLOCK, ...options })
}

function gets(server: S3Server) {
  return server.requests.filter(({ method, isList }) => method === 'GET' && !isList)
}

function once(key: string, fault: ReturnType<S3Server['fault']>): S3Server['fault'] {
  let isDone = false
  return (request) => {
    if (isDone || request.method !== 'GET' || request.key !== key) return undefined
    isDone = true
    return fault
  }
}

async function temporaries(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true })
  return entries.filter((entry) => entry.endsWith('.tmp') && dirname(entry) !== '.sync')
}
