import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  isRecorderName,
  rawDateDirectory,
  rawFileOfKey,
  rawKey,
  rawSegmentName,
  rawSegmentOfName,
  rawSourceDirectory,
} from '../../shared/lake-layout.ts'
import { isSeriesName, seriesNameProblem } from '../../shared/series-name.ts'

test('a series name is validated by its characters and its length, and the error says what is wrong', () => {
  for (const name of ['KXHIGHNY', 'KXHIGHNY-26MAR04', 'a', '_x', '0xab', 'a..b', 'S'.repeat(128)]) {
    assert.ok(isSeriesName(name), name)
    assert.equal(seriesNameProblem(name), undefined, name)
  }
  for (const [name, problem] of [
    ['S'.repeat(129), /^has 129 characters; a series has at most 128$/],
    ['S'.repeat(200), /^has 200 characters; a series has at most 128$/],
    ['', /^is no series: those have letters, digits/],
    ['..', /begin with neither dot nor dash$/],
    ['.hidden', /begin with neither/],
    ['-rf', /begin with neither/],
    ['a/b', /^is no series/],
    ['a\n', /^is no series/],
    ['KXÜ', /^is no series/],
  ] as const) {
    assert.ok(!isSeriesName(name), name)
    assert.match(seriesNameProblem(name) ?? '', problem, name)
  }
})

test('a raw file’s key names its source, its date and its segment', () => {
  const digest = '0123456789abcdef0123456789abcdef'
  const segment = { recorder: 'host1', hour: 7, digest }
  const name = `host1-07-${digest}.ndjson.gz`
  assert.equal(rawSegmentName(segment), name)
  assert.deepEqual(rawSegmentOfName(name), segment)
  const place = { source: 'kalshi', date: '2026-07-01' } as const
  assert.deepEqual(rawFileOfKey(rawKey('kalshi', '2026-07-01', name)), { ...place, name, segment })
  assert.deepEqual(rawFileOfKey('raw/source=kalshi/date=2026-07-01/manifest.json'), {
    ...place,
    name: 'manifest.json',
    segment: undefined,
  })
  assert.equal(
    rawDateDirectory('/lake', 'kalshi', '2026-07-01'),
    join(rawSourceDirectory('/lake', 'kalshi'), 'date=2026-07-01'),
  )
  for (const other of [
    `raw/source=nyse/date=2026-07-01/${name}`,
    `raw/source=kalshi/date=2026-02-30/${name}`,
    `raw/source=kalshi/date=2026-07-01/deeper/${name}`,
    `lob/source=kalshi/date=2026-07-01/${name}`,
    'raw/source=kalshi/date=2026-07-01/.segment.0123456789ab.tmp',
    'raw/source=kalshi/date=2026-07-01/other.json',
    'raw/source=kalshi/date=2026-07-01',
  ])
    assert.equal(rawFileOfKey(other), undefined, other)
  for (const other of ['host1-24-', 'host1-7-', 'Host-07-', `${'a'.repeat(25)}-07-`, '-07-'])
    assert.equal(rawSegmentOfName(`${other}${digest}.ndjson.gz`), undefined, other)
  assert.equal(rawSegmentOfName(name.replace('.gz', '')), undefined)
  assert.ok(isRecorderName('import') && !isRecorderName('a-b') && !isRecorderName(''))
})
