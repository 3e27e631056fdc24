import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DataVersions } from '../../server/catalogue/catalogue-feed.ts'
import { freshVersions } from '../../server/catalogue/fresh-versions.ts'

function versionsAt(number: number): DataVersions {
  return new Map([['candles', String(number)]])
}

test('each caller gets versions read after its call, and callers share readings', async () => {
  const readings: ((versions: DataVersions) => void)[] = []
  const versions = freshVersions(
    () => new Promise((resolve) => readings.push(resolve)),
    () => false,
  )
  const first = versions()
  const later = [versions(), versions(), versions()]
  assert.equal(readings.length, 1)
  readings[0]?.(versionsAt(1))
  assert.deepEqual(await first, versionsAt(1))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(readings.length, 2)
  readings[1]?.(versionsAt(2))
  assert.deepEqual(await Promise.all(later), [versionsAt(2), versionsAt(2), versionsAt(2)])
})

test('an unavailable store is not read, and a failing or silent one does not block callers', async () => {
  let isAway = true
  let asked = 0
  const versions = freshVersions(
    async () => {
      asked += 1
      if (asked === 1) throw new Error('broken')
      return new Promise(() => {})
    },
    () => isAway,
  )
  assert.equal(await versions(), undefined)
  assert.equal(asked, 0)
  isAway = false
  assert.equal(await versions(), undefined)
  assert.equal(await versions(), undefined, 'a silent one')
  assert.equal(await versions(), undefined, 'and it is not asked twice at once')
  assert.equal(asked, 2)
})
