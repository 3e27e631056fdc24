import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { mkdir, open, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeLakeWriteError } from '../../server/lake/lake-write-error.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => assert.fail('nothing failed'),
    (error: unknown) => error,
  )
}

function systemError(code: string, fields: { path?: string; dest?: string; syscall: string }): Error {
  return Object.assign(new Error(`${code}: as the system says it`), { code, ...fields })
}

test('real system errors about a lake become a sentence with the lake, the reason and the code', async (t) => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'file')
  await writeFile(file, '')
  const loop = join(directory, 'loop')
  await symlink(loop, loop)
  const full = await open('/dev/full', 'w')
  t.after(() => full.close())
  const cases: [string, () => Promise<unknown>, RegExp][] = [
    [
      file,
      () => mkdir(join(file, 'lob')),
      /file\/lob is not below a directory but below a file \(ENOTDIR at .*file\/lob\)/,
    ],
    [file, () => mkdir(file), /file is a file where a directory must be; remove or rename it \(EEXIST\)/],
    [
      directory,
      () => writeFile(directory, ''),
      /is a directory where a file must be; remove or rename it \(EISDIR\)/,
    ],
    [loop, () => mkdir(join(loop, 'lob')), /is a link that leads back to itself \(ELOOP at/],
    [
      directory,
      () => mkdir(join(directory, 's'.repeat(300))),
      /longer than its file system allows \(ENAMETOOLONG at/,
    ],
    [
      join(directory, 'no/lake'),
      () => mkdir(join(directory, 'no/lake')),
      /directory above it does not exist/,
    ],
    [directory, () => full.writeFile('x').then(() => full.sync()), /its disk is full; .* \(ENOSPC\)/],
  ]
  for (const [lake, work, reason] of cases) {
    const sentence = describeLakeWriteError(await errorOf(work()), lake)
    assert.match(sentence ?? '', reason)
    assert.ok(sentence!.startsWith(`the lake ${lake} cannot be written: `), sentence)
  }
})

test('a dangling link anywhere in the path is reported as such', async (t) => {
  const directory = await temporaryDirectory(t)
  const link = join(directory, 'link')
  await symlink(join(directory, 'gone'), link)
  const cases: [string, string][] = [
    [link, join(link, 'lob', 'feed')],
    [link, link],
    [join(link, 'lake'), join(link, 'lake', 'lob')],
    [directory, join(link, 'lob')],
  ]
  for (const [lake, made] of cases) {
    const sentence = describeLakeWriteError(await errorOf(mkdir(made, { recursive: true })), lake)
    assert.match(sentence ?? '', /\/link is a link to .*\/gone, which does not exist/, made)
  }
})

test('the error for a failed rename names the final file', async (t) => {
  const lake = await temporaryDirectory(t)
  const temporary = join(lake, '.ledger.json.0123456789ab.tmp')
  await writeFile(temporary, '')
  const place = join(lake, 'ledger.json')
  await mkdir(place)
  const sentence = describeLakeWriteError(await errorOf(rename(temporary, place)), lake)
  assert.equal(
    sentence,
    `the lake ${lake} cannot be written: ${place} is a directory where a file must be; remove or rename it (EISDIR at ${place})`,
  )
})

test('permissions and read-only mounts are distinguished, also in wrapped errors and above the lake', () => {
  const lake = '/srv/lake'
  const file = `${lake}/lob/source=kalshi/series=A/date=2026-07-01/lob.parquet`
  const cases: [Error, string][] = [
    [systemError('EACCES', { path: `${lake}/lob`, syscall: 'mkdir' }), 'this user may not'],
    [systemError('EPERM', { path: '/srv', syscall: 'mkdir' }), 'this user may not'],
    [systemError('EROFS', { path: lake, syscall: 'mkdir' }), 'mounted read-only (EROFS)'],
    [
      systemError('EROFS', { path: `${file}.tmp`, dest: file, syscall: 'rename' }),
      'mounted read-only (EROFS at',
    ],
    [systemError('EXDEV', { path: '/spill/a.tmp', dest: file, syscall: 'rename' }), 'different file systems'],
    [systemError('EDQUOT', { syscall: 'write' }), 'quota'],
    [systemError('EIO', { syscall: 'fsync' }), 'disk reports an error (EIO)'],
  ]
  for (const [error, reason] of cases) {
    for (const thrown of [error, new Error('while writing', { cause: error })]) {
      assert.ok(describeLakeWriteError(thrown, lake)?.includes(reason), `${error.message} ${reason}`)
    }
  }
})

test('other errors are passed through', async (t) => {
  const directory = await temporaryDirectory(t)
  const lake = join(directory, 'lake')
  const missing = join(directory, 'recording.ndjson')
  const reading = new Promise((_, reject) => createReadStream(missing).once('error', reject))
  for (const error of [
    await errorOf(readFile(missing)),
    await errorOf(reading),
    systemError('EACCES', { path: '/srv/lake-of-others/lob', syscall: 'mkdir' }),
    systemError('EIO', { syscall: 'read' }),
    systemError('ECONNRESET', { syscall: 'write' }),
    new Error('a mistake of the program'),
    'a text',
    undefined,
  ]) {
    assert.equal(describeLakeWriteError(error, lake), undefined, String(error))
  }
})
