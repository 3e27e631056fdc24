// The texts that the page shows: snippets, calendar, metrics and numbers.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import type { ApiRequest } from '../../explorer/api-request.ts'
import { bytesText, clockText, durationText, instantText, valueText } from '../../explorer/number-text.ts'
import { parseSamples } from '../../explorer/prometheus-text.ts'
import {
  daysBetween,
  isRecorded,
  monthAfter,
  monthWeeks,
  recordedNeighbour,
} from '../../explorer/recorded-days.ts'
import { LANGUAGES, snippet } from '../../explorer/snippets.ts'
import { prefersHtml } from '../../server/site/front-page.ts'
import { spansOf } from '../../server/site/recordings.ts'

const BASE = 'http://127.0.0.1:8080'
const HOSTILE = `'; touch /nothing; "$(id)" \`id\` \\ <script>alert(1)</script>\n\u202E`

function texts(request: ApiRequest, needsKey = false): string[] {
  const urlOf = (format: string): string =>
    `${BASE}/api/v1/lob?market=${encodeURIComponent(String(request.parameters['market']))}&format=${format}`
  return LANGUAGES.map((language) => snippet(request, language, { baseUrl: BASE, needsKey, urlOf }))
}

test('with any market name a shell reads the URL as one word', () => {
  const [, curl = ''] = texts({ title: '', method: 'lob', parameters: { market: HOSTILE } })
  const [, ...words] = execFileSync('sh', ['-c', curl.replace(/^curl/, 'printf "%s\\n" curl')])
    .toString()
    .split('\n')
  assert.equal(words.length, 3)
  assert.deepEqual(words[0], '--fail')
  assert.equal(new URL(words[1] ?? '').searchParams.get('market'), HOSTILE)
})

test('Python and TypeScript snippets evaluate to the given values', () => {
  const parameters = { market: HOSTILE, from: '2026-07-02', levels: 50, fill: false, columns: ['ts', 'mid'] }
  const [, , python = '', typescript = ''] = texts({ title: '', method: 'candles', parameters })
  assert.ok(python.includes('client.candles(market="'))
  assert.ok(python.includes('start="2026-07-02", levels=50, fill=False, columns=["ts","mid"])'))
  const [, written = ''] = /candles\((\{.*\})\)/.exec(typescript) ?? []
  assert.deepEqual(JSON.parse(written), parameters)
})

test('an API key is referenced by name and never written', () => {
  for (const [index, text] of texts(
    { title: '', method: 'lob', parameters: { market: 'M' } },
    true,
  ).entries())
    assert.equal(text.includes('BOOKCAST_API_KEY'), LANGUAGES[index] !== 'URL', text)
})

test('/health and climate gaps have only json', () => {
  const request = { title: '', method: 'health', parameters: {} } as const
  const [, , python, typescript, duckdb] = texts(request)
  assert.match(python ?? '', /print\(client\.health\(\)\)/)
  assert.match(typescript ?? '', /await bookcast\.health\(\)/)
  assert.match(duckdb ?? '', /FROM 'health\.json'/)
  const gaps = { title: '', method: 'climateGaps', parameters: { station: 'NYC' } } as const
  assert.match(texts(gaps)[2] ?? '', /client\.climate_gaps\(station="NYC"\)/)
})

test('recorded days are shown as spans, with neighbours and the days in between', () => {
  const spans = spansOf(['2026-06-30', '2026-07-01', '2026-07-04'])
  assert.deepEqual(spans, [
    ['2026-06-30', '2026-07-01'],
    ['2026-07-04', '2026-07-04'],
  ])
  assert.deepEqual(spansOf([]), [])
  assert.ok(isRecorded(spans, '2026-07-01') && !isRecorded(spans, '2026-07-02'))
  assert.equal(recordedNeighbour(spans, '2026-07-01', 1), '2026-07-04')
  assert.equal(recordedNeighbour(spans, '2026-07-03', -1), '2026-07-01')
  assert.equal(recordedNeighbour(spans, '2026-07-04', 1), undefined)
  assert.equal(recordedNeighbour(spans, '2026-06-30', -1), undefined)
  assert.deepEqual(daysBetween(spans), [['2026-07-02', '2026-07-03']])
})

test('a month is shown in weeks from Monday', () => {
  const weeks = monthWeeks('2026-02')
  assert.deepEqual(weeks[0], [null, null, null, null, null, null, '2026-02-01'])
  assert.equal(weeks.flat().filter((day) => day !== null).length, 28)
  assert.ok(weeks.every((week) => week.length === 7))
  assert.deepEqual([monthAfter('2026-01', -1), monthAfter('2026-12', 1)], ['2025-12', '2027-01'])
})

test('metrics are read with their labels', () => {
  const text = '# HELP a b\na{x="1",y="q\\"\\n"} 2.5\nb 1e3\nb_total{le="+Inf"} +Inf\n\nnonsense\n'
  assert.deepEqual(parseSamples(text), [
    { name: 'a', labels: { x: '1', y: 'q"\n' }, value: 2.5 },
    { name: 'b', labels: {}, value: 1000 },
    { name: 'b_total', labels: { le: '+Inf' }, value: Number.NaN },
  ])
})

test('numbers are formatted for people', () => {
  assert.deepEqual([0, 999, 1500, 250_000, 81_646_330].map(bytesText), [
    '0 B',
    '999 B',
    '1.5 kB',
    '250 kB',
    '81.6 MB',
  ])
  assert.deepEqual([41, 41.5, null, undefined].map(valueText), ['41', '41.5', '–', '–'])
  assert.deepEqual([5, 600, 9000, 200_000].map(durationText), ['5 s', '10 min', '2.5 h', '2.3 d'])
  assert.equal(instantText(Date.UTC(2026, 6, 2, 3, 4, 5)), '2026-07-02 03:04:05Z')
  assert.equal(clockText(Date.UTC(2026, 6, 2, 3, 4)), '03:04')
})

test('only a client that accepts text/html gets a page', () => {
  const chromium = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
  for (const accept of [chromium, 'text/html', 'TEXT/HTML;q=0.5', 'application/json, text/html'])
    assert.ok(prefersHtml(accept), accept)
  for (const accept of [
    '',
    '*/*',
    'application/json',
    'text/html;q=0',
    'application/json, text/html;q=0.9',
    'text/*',
  ])
    assert.ok(!prefersHtml(accept), accept)
})
