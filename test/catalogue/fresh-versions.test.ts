import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DataVersions } from '../../server/catalogue/catalogue-feed.ts'
import { FreshVersions } from '../../server/catalogue/fresh-versions.ts'

function versionsAt(number: number): DataVersions {
  return new Map([['candles', String(number)]])
}

test('whoever asks gets what was read after it asked, and readings are shared', async () => {
  const readings: ((versions: DataVersions) => void)[] = []
  const versions = new FreshVersions({
    read: () => new Promise((resolve) => readings.push(resolve)),
    isAway: () => false,
  })
  const first = versions.now()
  const later = [versions.now(), versions.now(), versions.now()]
  assert.equal(readings.length, 1)
  readings[0]?.(versionsAt(1))
  assert.deepEqual(await first, versionsAt(1))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(readings.length, 2)
  readings[1]?.(versionsAt(2))
  assert.deepEqual(await Promise.all(later), [versionsAt(2), versionsAt(2), versionsAt(2)])
})

test('a store that is away is not asked, and one that fails or stays silent keeps nobody', async () => {
  let isAway = true
  let asked = 0
  const versions = new FreshVersions({
    read: async () => {
      asked += 1
      if (asked === 1) throw new Error('broken')
      return new Promise(() => {})
    },
    isAway: () => isAway,
  })
  assert.equal(await versions.now(), undefined)
  assert.equal(asked, 0)
  isAway = false
  assert.equal(await versions.now(), undefined)
  assert.equal(await versions.now(), undefined, 'a silent one')
  assert.equal(await versions.now(), undefined, 'and it is not asked twice at once')
  assert.equal(asked, 2)
})
