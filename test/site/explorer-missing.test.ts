// How the explorer shows missing data: dates without a recording, data that Polymarket lacks, a day that ends early, and the
// mark of sample data.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import {
  coloursAt,
  hasColour,
  leaveExplorer,
  openExplorer,
  type Rgb,
  tableCells,
  wholeRows,
} from '../support/explorer-page.ts'
import { MemoryStore, marketRow, seriesRow } from '../support/memory-store.ts'
import { startSampleServer } from '../support/sample-server.ts'

const file = serviceOfThisFile({
  // Of Denver only two days are left, so that a date between others has none.
  prepare: (lake) => rm(dirname(lobFilePath(lake, 'kalshi', 'KXHIGHDEN', '2026-07-02')), { recursive: true }),
})
const chromium = browserOfThisFile()
const skip = withoutChromium

async function open(fragment: string) {
  return openExplorer(chromium.browser, file.service.url, fragment)
}

/** Errors without the browser's own messages on failed requests. */
function own(faults: readonly string[]): string[] {
  return faults.filter((fault) => !fault.startsWith('Failed to load resource'))
}

for (const view of ['day', 'book', 'weather', 'candles'])
  test(
    `${view}: a date without a recording is reported with the nearest recorded date`,
    { skip },
    async () => {
      const { page, faults } = await open(`#view=${view}&series=KXHIGHNY&date=2026-06-25`)
      await page.getByText('There is no recording of KXHIGHNY on 2026-06-25.').waitFor()
      // No request without a market is sent.
      assert.equal(await page.getByText('is empty').count(), 0)
      await page.getByRole('button', { name: 'Show 2026-07-01 instead' }).click()
      assert.ok((await wholeRows(page)) > 0)
      assert.match(page.url(), /date=2026-07-01/)
      assert.equal(await page.locator('.missing').count(), 0)
      assert.deepEqual(own(faults), [])
      await leaveExplorer(page)
    },
  )

test('a date of any length does not change the width of the page', { skip }, async () => {
  const date = 'x'.repeat(10_000)
  for (const view of ['day', 'book', 'candles']) {
    const { page } = await open(`#view=${view}&series=KXHIGHNY&event=KXHIGHNY-26JUL02&market=M&date=${date}`)
    await page.getByRole('alert').waitFor()
    assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= 1280, view)
    assert.ok((await page.locator('h2').innerText()).length < 200, view)
    await leaveExplorer(page)
  }
})

test('a day between recorded ones links to the next', { skip }, async () => {
  const { page } = await open('#view=book&series=KXHIGHDEN&date=2026-07-02&event=all')
  await page.getByRole('button', { name: 'Show 2026-07-03 instead' }).waitFor()
  await leaveExplorer(page)
})

for (const [view, sentence] of [
  ['candles', /No candles of Polymarket are collected/],
  ['weather', /no catalogue of the markets of Polymarket/],
] as const)
  test(`Polymarket has no ${view}: the page says so and sends no request`, { skip }, async () => {
    const { page, faults } = await open(`#view=${view}&source=polymarket`)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.getByText(sentence).waitFor()
    assert.deepEqual(
      asked.filter((url) => /candles|observations|climate/.test(url)),
      [],
    )
    await page.getByRole('button', { name: 'Show the day instead' }).click()
    assert.ok((await wholeRows(page)) > 10_000)
    assert.match(page.url(), /view=day&source=polymarket/)
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  })

test('markets with opaque ids are labelled by their question and outcome', { skip }, async () => {
  const { page, faults } = await open('#view=book&source=polymarket')
  await wholeRows(page)
  const markets = page.getByRole('combobox', { name: 'Market', exact: true }).locator('option')
  const labels = await markets.allTextContents()
  assert.ok(labels.length > 12)
  for (const label of labels) assert.match(label, /^(?:[≤≥] )?\d+(?:–\d+)?° Jul \d( No)?$/)
  assert.equal(new Set(labels).size, labels.length)
  assert.match(await page.locator('h2').first().innerText(), /° Jul \d( No)? on 2026-07-03$/)
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test('the mids of several events are no distribution', { skip }, async () => {
  const { page, faults } = await open('#view=weather&series=KXHIGHNY&date=2026-07-02&event=all')
  await page.getByText('A distribution is that of one event').waitFor()
  assert.ok((await wholeRows(page)) > 10)
  assert.ok((await tableCells(page, 'Temperature, °F')).length > 10)
  assert.equal(await page.locator('.plot').count(), 1)
  assert.ok(await page.getByLabel('Time', { exact: true }).isVisible())
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test(
  'an event with unrecorded strikes shows no distribution, and states how many strikes were recorded',
  { skip },
  async (t) => {
    const strikes = ['T76', 'B76.5', 'B78.5', 'B80.5', 'B82.5', 'T83', 'B84.5']
    const markets = strikes.map((strike) => marketRow(`KXHIGHNY-26JUL02-${strike}`))
    const { url } = await startSampleServer(t, {}, new MemoryStore([seriesRow('KXHIGHNY')], markets))
    const event = 'series=KXHIGHNY&event=KXHIGHNY-26JUL02&date=2026-07-02'
    const { page } = await openExplorer(chromium.browser, url, `#view=day&${event}`)
    const caption = page.locator('table.strikes caption')
    await caption.getByText('6 of 7 strikes').waitFor()
    const implied = await page.locator('table.strikes tbody tr td:last-child').allInnerTexts()
    assert.deepEqual(
      implied,
      strikes.map(() => '–'),
    )
    await page.close()
  },
)

test('a day that ends early is hatched after its end', { skip }, async () => {
  // The event of the first of July settles in the night to the second: of that date it has five hours.
  const { page, faults } = await open('#view=day&series=KXHIGHNY&event=KXHIGHNY-26JUL01&date=2026-07-02')
  const rows = await wholeRows(page)
  assert.ok(rows > 0 && rows < 6 * 1440, String(rows))
  const hatched: string = await page.evaluate(
    `getComputedStyle(document.documentElement).getPropertyValue('--hatch')`,
  )
  const parts = (hatched.match(/[0-9a-f]{2}/g) ?? []).map((part) => Number.parseInt(part, 16))
  const colour: Rgb = [parts[0] ?? 0, parts[1] ?? 0, parts[2] ?? 0]
  assert.ok(hasColour(await coloursAt(page, [0.9, 0.5], { radiusPx: 6 }), colour))
  assert.ok(!hasColour(await coloursAt(page, [0.1, 0.5], { radiusPx: 6 }), colour))
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

for (const fragment of [
  '',
  '#view=book',
  '#view=weather',
  '#view=candles',
  '#view=data',
  '#source=polymarket',
])
  test(`sample data is marked: ${fragment || '/'}`, { skip }, async () => {
    const { page, faults } = await open(fragment)
    const mark = page.locator('#sample')
    await mark.filter({ hasText: 'sample' }).waitFor()
    assert.match(await mark.innerText(), /^(Invented sample data|Some of the data is an invented sample)$/)
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  })
