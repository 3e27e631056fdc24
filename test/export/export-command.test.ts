import assert from 'node:assert/strict'
import { appendFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { DirectoryTarget } from '../../server/export/directory-target.ts'
import { readPlan } from '../../server/export/export-plan.ts'
import { putObject } from '../../server/export/export-target.ts'
import { filesOf } from '../support/exports.ts'
import { bookcast } from '../support/program.ts'
import { type Fault, BUCKET, startS3Server } from '../support/s3-server.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const SMALL = ['--from', '2026-07-01', '--to', '2026-07-03', '--interval', '3600', '--levels', '1'] as const
const KEY = /^lob\/source=kalshi\/series=KXHIGHNY\/date=2026-07-0\d\/lob-[0-9a-f]{16}\.csv$/

/** An address without a store. */
const ENV = { BOOKCAST_DATA_DIR: '/nowhere', BOOKCAST_LAKE: SAMPLE_LAKE, BOOKCAST_EXPORT_CONCURRENCY: '1' }

async function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return await bookcast(['export', ...args], { env: { ...ENV, ...env } })
}

async function done(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const ended = await run(args, env)
  assert.equal(ended.code, 0, ended.stderr)
  return ended
}

/** The path of a plan for `out`. */
async function plan(t: TestContext, out: string, more: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const { stdout } = await done(
    ['plan', ...SMALL, '--series', 'KXHIGHNY', '--format', 'csv', '--out', out, ...more],
    env,
  )
  const path = join(await temporaryDirectory(t), 'plan.jsonl')
  await writeFile(path, stdout)
  return path
}

test('plans, runs, resumes and verifies; without a terminal each part is a line', async (t) => {
  const out = join(await temporaryDirectory(t), 'out')
  const path = await plan(t, out)
  const { stdout, stderr } = await done(['run', path])
  assert.match(stdout, /: 3 parts, \d+ rows, 0\.\d MiB\n$/)
  assert.equal(stderr.split('\n').filter((line) => /^\d\/3 lob\/.*rows, /.test(line)).length, 3)
  const whole = await filesOf(out)
  const keys = Object.keys(whole).filter((key) => KEY.test(key))
  assert.equal(keys.length, 3)
  // Existing parts stay; damaged or removed ones are made again.
  await appendFile(join(out, keys[0]!), 'x')
  await rm(join(out, keys[1]!))
  await rm(join(out, 'manifest.json'))
  const record = Object.keys(whole).find(
    (key) => key.startsWith('_parts/') && key.includes(keys[2]!.split('/').at(-1)!),
  )
  await writeFile(join(out, record!), '{')
  await done(['run', path])
  assert.deepEqual(await filesOf(out), whole)
  assert.match((await done(['verify', out])).stdout, /^3 parts, .* 0 problems\n$/)
  const sums = await readFile(join(out, 'SHA256SUMS'), 'utf8')
  assert.match(sums, /^(?:[0-9a-f]{64} {2}lob\/.*\n){3}[0-9a-f]{64} {2}manifest\.json\n$/)
})

test('the parts of an earlier export in the same target are named', async (t) => {
  const out = await temporaryDirectory(t)
  const first = await done(['run', await plan(t, out)])
  assert.doesNotMatch(first.stderr, /not part of this export/)
  const { stderr } = await done(['run', await plan(t, out, ['--levels', '2'])])
  assert.match(stderr, /also has 3 files that are not part of this export, such as lob\//)
})

test('verify names missing, damaged and foreign files', async (t) => {
  const out = await temporaryDirectory(t)
  await done(['run', await plan(t, out)])
  const [first, second, third] = (await entriesBelow(out)).filter((key) => KEY.test(key))
  await appendFile(join(out, first!), 'x')
  const bytes = await readFile(join(out, second!))
  bytes[40]! ^= 1
  await writeFile(join(out, second!), bytes)
  await rm(join(out, third!))
  await writeFile(join(out, 'lob', 'other.csv'), 'x')
  await appendFile(join(out, 'SHA256SUMS'), 'x')
  await appendFile(join(out, 'manifest.json'), ' ')
  const { code, stderr, stdout } = await run(['verify', out])
  assert.equal(code, 1)
  assert.match(stdout, /6 problems/)
  for (const line of [
    `${first} has SHA-256`,
    `${second} has SHA-256`,
    `${third} is missing`,
    'lob/other.csv is not part of this export',
    'manifest.json has SHA-256',
    'SHA256SUMS has a line without a checksum: "x"',
  ])
    assert.ok(stderr.includes(line), `${line}: ${stderr}`)
})

test('a bucket that fails one request in five and truncates responses gets the same objects as a directory', async (t) => {
  const [s3, out] = [await startS3Server(t), await temporaryDirectory(t)]
  await done(['run', await plan(t, out)])
  const wanted = await filesOf(out)
  const place = `s3://${BUCKET}/exports/one`
  const env = { BOOKCAST_S3_ENDPOINT: s3.endpoint }
  const path = await plan(t, place, [], env)
  let seen = 0
  s3.fault = ({ method }): Fault | undefined => {
    seen += 1
    if (seen % 5 !== 0) return undefined
    return method === 'GET' ? { cutAfterBytes: 20 } : seen % 2 === 0 ? { status: 503 } : { cutAfterBytes: 0 }
  }
  await done(['run', path], env)
  assert.match((await done(['verify', place], env)).stdout, /^3 parts, .* 0 problems\n$/)
  s3.fault = () => undefined
  // A repeated run reads no part, because the bucket has their checksums.
  s3.requests.length = 0
  await done(['run', path], env)
  assert.ok(!s3.requests.some(({ method, key }) => method !== 'HEAD' && key.endsWith('.csv')))
  const found: Record<string, string> = {}
  const store = s3.store('exports/one')
  for await (const object of store.list(undefined, { raw: true }, () => true)) {
    const chunks: Buffer[] = []
    for await (const chunk of await store.get(object, 0)) chunks.push(chunk as Buffer)
    found[object.key] = Buffer.concat(chunks).toString('hex')
  }
  assert.deepEqual(found, wanted)
  assert.ok(seen > 20)
  // Every object is sent with one request, so there are no unfinished uploads.
  assert.deepEqual(
    s3.requests.filter(({ method }) => method === 'POST'),
    [],
  )
})

test('errors for wrong use of plan are one sentence', async (t) => {
  const out = await temporaryDirectory(t)
  const good = ['--from', '2026-07-01', '--to', '2026-07-02', '--out', out]
  for (const [args, code, message] of [
    [good.slice(2), 2, /--from \(or BOOKCAST_EXPORT_FROM\) must be given/],
    [[...good, '--from', 'soon'], 2, /--from must be a date \(YYYY-MM-DD\), not "soon"/],
    [[...good, '--to', '2026-06-30'], 2, /--to must not be before --from; 2026-06-30 is before 2026-07-01/],
    [[...good, '--interval', '0'], 2, /interval must be a whole number from 1 to 3600, not "?0/],
    [[...good, '--columns', 'ts,price'], 2, /columns must be a comma-separated list/],
    [[...good, '--format', 'json'], 2, /--format must be one of parquet, ndjson, csv, not "json"/],
    [[...good, '--units', 'metric'], 2, /--units is not an option of --dataset lob/],
    [[...good, '--dataset', 'climate'], 2, /--dataset must be one of lob, trades, candles, observations/],
    [[...good, '--out', SAMPLE_LAKE], 2, /--out must not be the lake/],
    [[...good, '--out', join(SAMPLE_LAKE, 'export')], 2, /--out must not be the lake or lie in it/],
    [[...good, '--out', 's3://UPPER'], 2, /--out takes s3:\/\/bucket\/prefix or a directory/],
    [[...good, '--lake', join(out, 'no')], 1, /--lake: there is no directory/],
    [[...good, '--series', 'KXNOPE'], 1, /no lob of series "KXNOPE"; it has KXHIGHCHI, KXHIGHDEN, KXHIGHNY/],
    [[...good, '--series', 'KXHIGHNY-26JUL01'], 1, /no lob of series "KXHIGHNY-26JUL01"/],
    [[...good, '--dataset', 'candles'], 1, /nothing of candles from 2026-07-01 to 2026-07-02/],
    [[...good, '--from', '2020-01-01', '--to', '2020-01-02'], 1, /nothing of lob .*: no file/],
  ] as const) {
    const ended = await run(['plan', ...args])
    assert.equal(ended.code, code, ended.stderr)
    assert.match(ended.stderr, message)
    assert.equal(ended.stdout, '')
  }
  assert.deepEqual(await entriesBelow(out), [])
})

test('errors for wrong plans, indices and commands are one sentence', async (t) => {
  const out = join(await temporaryDirectory(t), 'out')
  const path = await plan(t, out)
  const text = await readFile(path, 'utf8')
  const written = async (name: string, content: string): Promise<string> => {
    const place = join(path, '..', name)
    await writeFile(place, content)
    return place
  }
  for (const [args, message] of [
    [['run'], /a plan must be given/],
    [['run', join(out, 'plan.jsonl')], /plan.jsonl cannot be read: ENOENT/],
    [['run', await written('a.json', 'no json')], /a.json is not an export plan/],
    [['run', await written('b.json', '{"parts":[]}')], /b.json is not an export plan/],
    [
      ['run', await written('c.json', text.replace('"levels":"1"', '"levels":"2"'))],
      /c.json was changed after/,
    ],
    [['run', await written('d.json', `${text}{}\n`)], /d.json was changed after/],
    [
      ['part', await written('e.json', text.replace('"rows":', '"rows":1')), '--index', '0'],
      /e.json was changed/,
    ],
    [['part', path, '--index', '3'], /there is no part 3: the plan has 3, from 0 on/],
    [['part', path, '--index', '-1'], /--index/],
    [['part', path], /--index \(or BOOKCAST_EXPORT_INDEX\) must be given/],
    [['parts'], /export takes plan, part, finish, run, verify, submit, status, cancel, not "parts"/],
  ] as const) {
    const ended = await run(args)
    assert.equal(ended.code, 2, ended.stderr)
    assert.match(ended.stderr, message)
  }
  for (const [args, message] of [
    [['finish', path], /lacks 3 parts of the plan: 0, 1, 2; "bookcast export part/],
    [['verify', out], /is not a finished export: it has no SHA256SUMS/],
  ] as const) {
    const ended = await run(args)
    assert.equal(ended.code, 1, ended.stderr)
    assert.match(ended.stderr, message)
  }
  assert.deepEqual(await entriesBelow(out), [])
})

test('a lake file that changed since the plan is named, and its part leaves no files', async (t) => {
  const [lake, out] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  const path = await plan(t, out, ['--lake', lake])
  const files: string[] = []
  for await (const part of (await readPlan(path)).parts) files.push(...part.files.map((file) => file.path))
  await cp(join(lake, files[0]!), join(lake, files[1]!))
  await rm(join(lake, files[2]!))
  for (const index of [1, 2]) {
    const { code, stderr } = await run(['part', path, '--index', String(index), '--lake', lake])
    assert.equal(code, 1)
    assert.ok(stderr.includes(`the lake file ${files[index]} changed or went away since the plan`), stderr)
  }
  const names = await entriesBelow(out)
  assert.ok(!names.some((name) => name.includes('.csv')), names.join())
})

test('errors for a target that cannot be written and for wrong credentials are one sentence', async (t) => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'file')
  await writeFile(file, '')
  const blocked = await run(['run', await plan(t, join(file, 'out'))])
  assert.equal(blocked.code, 1)
  assert.match(blocked.stderr, /the target .*out cannot be written: .* is not below a directory/)
  const s3 = await startS3Server(t)
  const env = { BOOKCAST_S3_ENDPOINT: s3.endpoint }
  const path = await plan(t, `s3://${BUCKET}/x`, [], env)
  s3.fault = () => ({ status: 403 })
  const refused = await run(['run', path], env)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /s3:\/\/lake\/x refuses these credentials \(.*\); set AWS_ACCESS_KEY_ID/)
  s3.fault = () => ({ status: 404 })
  const nowhere = await run(['run', path], env)
  assert.match(nowhere.stderr, /s3:\/\/lake\/x: there is no such bucket/)
})

test('the error for a full disk is one sentence, and the next run resumes', async (t) => {
  await onSmallDisk(t, 4, async (disk) => {
    const out = join(disk.path, 'out')
    const path = await plan(t, out)
    await mkdir(out)
    await disk.fill()
    const { code, stderr } = await run(['run', path])
    assert.equal(code, 1)
    assert.match(stderr, /the target .* cannot be written: its disk is full/)
    assert.ok(!(await entriesBelow(out)).some((name) => name.includes('.csv')))
    await disk.free()
    await done(['run', path])
    await done(['verify', out])
  })
})

test('a put into a directory is not repeated after its rename', async (t) => {
  class Unsynced extends DirectoryTarget {
    puts = 0
    override async put(...object: Parameters<DirectoryTarget['put']>): Promise<void> {
      this.puts += 1
      await super.put(...object)
      throw new Error('no room for the directory')
    }
  }
  const target = new Unsynced(await temporaryDirectory(t))
  await assert.rejects(putObject(target, 'a/b', ['text'], new AbortController().signal), /no room for/)
  assert.equal(target.puts, 1)
})
