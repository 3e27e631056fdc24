import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSeriesName, seriesNameProblem } from '../../shared/series-name.ts'

test('a series name is told by its characters and its length, and what is wrong is said', () => {
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
