// The explorer's views in a real browser, with the sample data: pictures and tables agree with the API.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Candle, Observation, Snapshot, Trade } from '../../clients/typescript/bookcast.ts'
import { quantityCode } from '../../explorer/quantity-scale.ts'
import { quoteMid } from '../../explorer/quote.ts'
import { viridis } from '../../explorer/viridis.ts'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import {
  assertColour,
  codeIn,
  coloursAt,
  hasColour,
  leaveExplorer,
  openExplorer,
  pictureOf,
  type Rgb,
  tableCells,
  wholeRows,
} from '../support/explorer-page.ts'

const file = serviceOfThisFile()
const chromium = browserOfThisFile()
const skip = withoutChromium

/** Where to put the README's picture, `explorer/explorer.png`. */
const PICTURE = process.env['BOOKCAST_PICTURE']
const withoutPicture = PICTURE === undefined ? 'BOOKCAST_PICTURE names no file' : false
const PICTURED = '#view=day&series=KXHIGHNY&event=KXHIGHNY-26JUL02&date=2026-07-02&at=2026-07-02T17:00:00Z'

const DAY_MS = Date.UTC(2026, 6, 2)
const DAY_LENGTH_MS = 86_400_000
const EVENT = '#source=kalshi&series=KXHIGHCHI&event=KXHIGHCHI-26JUL02&date=2026-07-02'
const MARKET = 'KXHIGHNY-26JUL02-B80.5'

async function open(fragment: string) {
  return openExplorer(chromium.browser, file.service.url, fragment)
}

async function snapshots(query: string): Promise<Snapshot[]> {
  return (await file.service.rows(`/api/v1/lob?${query}`)) as unknown as Snapshot[]
}

function colourOf(text: string): Rgb {
  const [red = 0, green = 0, blue = 0] = text.match(/\d+/g)?.map(Number) ?? []
  return [red, green, blue]
}

/** A colour of the style sheet, `#rrggbb`. */
function hexColour(text: string): Rgb {
  const [red = 0, green = 0, blue = 0] =
    text.match(/[0-9a-f]{2}/g)?.map((part) => Number.parseInt(part, 16)) ?? []
  return [red, green, blue]
}

test('/ shows a whole day of all strikes of an event at once', { skip }, async () => {
  const { page, faults } = await open('')
  const count = await wholeRows(page)
  // Six strikes at every minute.
  assert.equal(count, 6 * 1440)
  assert.match(
    page.url(),
    /#view=day&source=kalshi&series=KXHIGHCHI&event=KXHIGHCHI-26JUL03.*&date=2026-07-03$/,
  )
  const rows = await snapshots('series=KXHIGHCHI-26JUL03&date=2026-07-03&interval=60&levels=1')
  const swatches: string[] = await page.evaluate(
    `[...document.querySelectorAll('.strikes .swatch')].map((swatch) => getComputedStyle(swatch).backgroundColor)`,
  )
  const labels = (await tableCells(page, 'At 2026-07-03')).map(([label]) => label)
  assert.deepEqual(labels, ['< 84°', '84–85°', '86–87°', '88–89°', '90–91°', '> 91°'])
  const markets = ['T84', 'B84.5', 'B86.5', 'B88.5', 'B90.5', 'T91'].map(
    (strike) => `KXHIGHCHI-26JUL03-${strike}`,
  )
  const tick = 600
  for (const place of [1, 2, 3, 4]) {
    const row = rows.filter(({ market_id: market }) => market === markets[place])[tick]
    const mid = quoteMid(row?.best_bid ?? 0, row?.best_ask ?? 0) ?? Number.NaN
    const colours = await coloursAt(page, [(tick + 0.5) / 1440, mid / 100])
    assertColour(colours, colourOf(swatches[place] ?? ''), `strike ${markets[place]} at ${mid}`)
  }
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test('the picture of the README, where one is wanted', { skip: skip || withoutPicture }, async () => {
  const { page } = await openExplorer(chromium.browser, file.service.url, PICTURED, {
    viewport: { width: 1040, height: 680 },
  })
  await wholeRows(page)
  // The mark of sample data appears somewhat later.
  await page.locator('#sample').filter({ hasText: 'Invented sample data' }).waitFor()
  await page.screenshot({ path: PICTURE ?? '' })
  await page.close()
})

test('the table of the day has the mids of every strike, and its gap is hatched', { skip }, async () => {
  const { page, faults } = await open(EVENT)
  await wholeRows(page)
  // The sample's outage, 18:12:07 to 18:13:42: at the minute within it no book is known.
  const outage = (18 * 60 + 13) / 1440
  await page.getByLabel('Time', { exact: true }).fill(String(18 * 60 + 13))
  const cells = await tableCells(page, 'Mids, cents')
  const at = (time: string) => cells.find(([heading]) => heading === `2026-07-02 ${time}:00Z`)
  assert.deepEqual(
    at('18:13')?.slice(1),
    Array.from({ length: 6 }, () => '–'),
  )
  assert.ok(
    at('18:12')
      ?.slice(1)
      .every((text) => /^[\d.]+$/.test(text)),
  )
  assert.deepEqual(
    (await tableCells(page, 'At 2026-07-02 18:13:00Z')).map((row) => row.slice(1)),
    Array.from({ length: 6 }, () => ['–', '–', '–', '–']),
  )
  await page.getByLabel('Time', { exact: true }).fill('0')
  const hatched: string = await page.evaluate(
    `getComputedStyle(document.documentElement).getPropertyValue('--hatch')`,
  )
  const hatchColour: Rgb = hexColour(hatched)
  assertColour(await coloursAt(page, [outage, 0.97]), hatchColour, 'the outage')
  assert.ok(!hasColour(await coloursAt(page, [outage + 0.02, 0.97]), hatchColour))
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test('the book shows every level in its shade and the ladder at the cursor', { skip }, async () => {
  const { page, faults } = await open(
    `#view=book&market=${MARKET}&series=KXHIGHNY&event=KXHIGHNY-26JUL02&date=2026-07-02`,
  )
  assert.equal(await wholeRows(page), 1440)
  const rows = await snapshots(`market=${MARKET}&date=2026-07-02&interval=60&levels=50`)
  const quantities = rows.flatMap(({ bids, asks }) => [...bids, ...asks].map(({ qty }) => qty))
  const largest = Math.max(...quantities.map(quantityCode))
  // Away from the lines, the cursor and the grid.
  const tick = 400
  const row = rows[tick]
  assert.ok(row !== undefined)
  const far = row.bids.filter(({ price }) => price < row.best_bid - 3 && price % 10 !== 0)
  assert.ok(far.length > 10)
  for (const { price, qty } of far) {
    const shade = viridis((quantityCode(qty) - 1) / Math.max(1, largest - 1))
    const colours = await coloursAt(page, [(tick + 0.5) / 1440, (price - 0.5) / 99], { radiusPx: 0 })
    assertColour(colours, shade, `${qty} at ${price}`)
  }
  // Nothing lies between the best bid and the best ask.
  await page.getByLabel('Time', { exact: true }).fill(String(tick))
  const ladder = await tableCells(page, 'Book at 2026-07-02 06:40:00Z')
  const withTotals = (levels: Snapshot['bids']): [price: string, qty: string, total: string][] =>
    levels.map(({ price, qty }, index) => {
      const total = levels.slice(0, index + 1).reduce((sum, level) => sum + level.qty, 0)
      return [`${price}¢`, qty.toLocaleString('en-GB'), total.toLocaleString('en-GB')]
    })
  assert.deepEqual(ladder, [
    ...withTotals(row.asks)
      .map(([price, qty, total]) => ['', '', price, qty, total])
      .toReversed(),
    [`spread ${row.best_ask - row.best_bid}¢`],
    ...withTotals(row.bids).map(([price, qty, total]) => [total, qty, price, '', '']),
  ])
  const quotes = await tableCells(page, 'Best quotes')
  assert.deepEqual(quotes.find(([time]) => time === '2026-07-02 06:40:00Z')?.slice(1, 3), [
    String(row.best_bid),
    String(row.best_ask),
  ])
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test('trades are marks on the day and the book, with a table', { skip }, async () => {
  for (const [view, names] of [
    ['book', `market=${MARKET}`],
    ['day', 'series=KXHIGHNY-26JUL02'],
  ] as const) {
    const { page, faults } = await open(
      `#view=${view}&market=${MARKET}&series=KXHIGHNY&event=KXHIGHNY-26JUL02&date=2026-07-02`,
    )
    await wholeRows(page)
    const trades = (await file.service.rows(
      `/api/v1/trades?${names}&date=2026-07-02&limit=10000`,
    )) as unknown as Trade[]
    await page.getByText(`Trades: table of ${trades.length.toLocaleString('en-GB')} rows`).waitFor()
    await page.getByLabel('Time', { exact: true }).fill('0')
    const cells = await tableCells(page, 'Trades')
    assert.equal(cells.length, Math.min(100, trades.length))
    assert.deepEqual(
      cells.map(([time, ...row]) => [time, ...row.slice(-3)]),
      trades
        .slice(0, 100)
        .map(({ ts, price, qty, aggressor }) => [
          `${new Date(ts / 1e6).toISOString().slice(0, 19).replace('T', ' ')}Z`,
          String(price),
          String(qty),
          aggressor,
        ]),
    )
    if (view === 'book') {
      const largest = trades.reduce((one, other) => (other.qty > one.qty ? other : one))
      const x = (largest.ts / 1e6 - DAY_MS) / DAY_LENGTH_MS
      assertColour(
        await coloursAt(page, [x, (largest.price - 0.5) / 99]),
        [255, 255, 255],
        'the largest trade',
      )
    }
    const choice = page.getByRole('combobox', { name: 'Request', exact: true })
    assert.deepEqual(await choice.locator('option').allTextContents(), ['order books', 'trades'])
    await choice.selectOption('trades')
    assert.match(await codeIn(page, 'URL'), /\/api\/v1\/trades\?/)
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  }
})

test('zooming into an hour requests every second of it automatically', { skip }, async () => {
  const { page, faults } = await open(
    `#view=book&market=${MARKET}&series=KXHIGHNY&date=2026-07-02&event=KXHIGHNY-26JUL02`,
  )
  await wholeRows(page)
  const before = await pictureOf(page)
  const area = await page.locator('.plot-area').boundingBox()
  assert.ok(area !== null)
  const x = (hours: number): number => area.x + (area.width * hours) / 24
  const asked = page.waitForRequest((request) => request.url().includes('hour=15'))
  await page.mouse.move(x(15.1), area.y + 50)
  await page.mouse.down()
  await page.mouse.move(x(15.5), area.y + 60, { steps: 4 })
  await page.mouse.up()
  assert.match((await asked).url(), /date=2026-07-02&hour=15&interval=1&levels=50/)
  assert.equal(await wholeRows(page), 3600)
  assert.notEqual(await pictureOf(page), before)
  const whole = page.waitForRequest((request) => request.url().includes('interval=60'))
  await page.getByRole('button', { name: 'All' }).click()
  await whole
  assert.equal(await wholeRows(page), 1440)
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test(
  'weather and market: the maximum so far, the reports and the distribution under one cursor',
  { skip },
  async () => {
    const { page, faults } = await open(`#view=weather&${EVENT.slice(1)}`)
    await wholeRows(page)
    const [fromMs, toMs] = [DAY_MS + 6 * 3_600_000, DAY_MS + 30 * 3_600_000]
    const observations = (await file.service.rows(
      `/api/v1/observations?station=MDW&from=2026-07-02T06:00:00Z&to=2026-07-03T11:00:00Z`,
    )) as unknown as Observation[]
    const cells = await tableCells(page, 'Temperature, °F')
    let maximum = Number.NEGATIVE_INFINITY
    for (const { observed_at: time, temp_f: temperature } of observations) {
      const isInside = Date.parse(time) >= fromMs && Date.parse(time) < toMs
      if (temperature !== null && isInside) maximum = Math.max(maximum, temperature)
      const row = cells.find(([heading]) => heading === time.replace('T', ' '))
      assert.deepEqual(row?.slice(1, 3), [String(temperature), isInside ? String(maximum) : '–'], time)
    }
    const reports = await file.service.rows(
      '/api/v1/climate?station=MDW&from=2026-07-02&to=2026-07-02&revisions=true',
    )
    assert.deepEqual(
      new Set((await tableCells(page, 'Climate reports')).map((row) => row.join(' '))),
      new Set(
        reports.map(({ report_type, issued_at, high_temp_f, low_temp_f }) =>
          [report_type, `${String(issued_at).slice(5, 16).replace('T', ' ')}Z`, high_temp_f, low_temp_f].join(
            ' ',
          ),
        ),
      ),
    )
    assert.equal(reports.length, 2)
    // The plot of temperatures holds the maximum; colours of its line are those of the style sheet.
    const fall: string = await page.evaluate(
      `getComputedStyle(document.documentElement).getPropertyValue('--fall')`,
    )
    const line: Rgb = hexColour(fall)
    const everywhere = await coloursAt(page, [20 / 29, 0.9], { radiusPx: 20 })
    assertColour(everywhere, line, 'the running maximum')
    // Shares sum to 100, and every strike's band has its own colour.
    const knownShares = async (): Promise<string[][]> =>
      (await tableCells(page, 'Implied distribution, percent')).filter(([, first]) => first !== '–')
    let known = await knownShares()
    // The books come last.
    for (let attempt = 0; known.length <= 50 && attempt < 100; attempt++) {
      await page.waitForTimeout(100)
      known = await knownShares()
    }
    assert.ok(known.length > 50)
    for (const [time, ...row] of known)
      assert.ok(Math.abs(row.reduce((sum, share) => sum + Number(share), 0) - 100) < 0.35, time)
    const bands = await Promise.all(
      [0.3, 0.95].map((y) => coloursAt(page, [4 / 29, y], { index: 1, radiusPx: 1 })),
    )
    assert.notDeepEqual(bands[0], bands[1])
    // One cursor for both.
    await page.getByLabel('Time', { exact: true }).fill('144')
    const lefts: number[] = await page.evaluate(
      `[...document.querySelectorAll('.u-cursor-x')].map((line) => line.getBoundingClientRect().left)`,
    )
    assert.equal(lefts.length, 2)
    assert.ok(Math.abs((lefts[0] ?? 0) - (lefts[1] ?? 9)) < 1.5, String(lefts))
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  },
)

test('candles: bodies at the prices, volumes below, all values in the table', { skip }, async () => {
  const candles = (await file.service.rows(
    `/api/v1/candles?market=${MARKET}&from=2026-07-02&to=2026-07-02&interval=60&fill=false`,
  )) as unknown as Candle[]
  // The cursor stands within a candle's period.
  const chosen = candles[2]!.end_period_ts
  const cursor = new Date(Date.parse(chosen) - 1_800_000).toISOString()
  const { page, faults } = await open(
    `#view=candles&market=${MARKET}&series=KXHIGHNY&event=KXHIGHNY-26JUL02&date=2026-07-02&candle=60&at=${cursor}`,
  )
  const count = await wholeRows(page)
  assert.equal(count, candles.length)
  assert.ok((await page.locator('.readout').textContent())?.startsWith(chosen.replace('T', ' ')))
  assert.ok(count > 3)
  assert.deepEqual(
    await tableCells(page, 'Candles'),
    candles.map((candle) => [
      candle.end_period_ts.replace('T', ' '),
      ...[candle.open, candle.high, candle.low, candle.close].map(String),
      ...[candle.volume, candle.open_interest].map((value) => value.toLocaleString('en-GB')),
    ]),
  )
  const [low, high] = [
    Math.min(...candles.map((each) => each.low)) - 2,
    Math.max(...candles.map((each) => each.high)) + 2,
  ]
  const colours: string[] = await page.evaluate(
    `['--rise', '--fall'].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())`,
  )
  const [rise, fall] = colours.map((text): Rgb => hexColour(text))
  for (const { open: opened, close, end_period_ts: end } of candles) {
    const x = (Date.parse(end) - 1_800_000 - DAY_MS) / DAY_LENGTH_MS
    const at = await coloursAt(page, [
      x,
      (close - Math.max(0, low)) / (Math.min(100, high) - Math.max(0, low)),
    ])
    assertColour(at, (close >= opened ? rise : fall) ?? [0, 0, 0], `the candle of ${end}`, 14)
  }
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test(
  'the state of the service: stores, slots, lag, recorded dates and missing reports',
  { skip },
  async () => {
    const { page, faults } = await open('#view=data')
    await page.getByText('Asked at').waitFor()
    const stores = new Map((await tableCells(page, 'Stores and sync')).map(([name, state]) => [name, state]))
    assert.equal(stores.get('Service'), 'ok')
    assert.equal(stores.get('Relational database'), 'ok')
    assert.equal(stores.get('Parquet files'), '15')
    const recorded = await tableCells(page, 'Recorded order books')
    assert.deepEqual(
      recorded.find(([series]) => series === 'KXHIGHNY'),
      ['KXHIGHNY', 'kalshi', '2026-07-01', '2026-07-03', 'none'],
    )
    assert.equal(recorded.length, 4)
    const lanes = (await tableCells(page, 'Slots: 0 of 4')).map(([lane]) => lane)
    assert.ok(lanes.includes('lob'), String(lanes))
    assert.ok((await tableCells(page, 'Lag')).length > 0)
    assert.ok(
      (await tableCells(page, 'Dates without a climate report at MDW')).some(
        ([from]) => from === '2026-06-24',
      ),
    )
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  },
)

test('Polymarket: every token of the date, by its own name', { skip }, async () => {
  const { page, faults } = await open('#source=polymarket')
  assert.ok((await wholeRows(page)) > 10_000)
  assert.match(page.url(), /series=highest-temperature-in-nyc&event=all/)
  await page
    .getByRole('button', { name: /: open the book$/ })
    .first()
    .click()
  const count = await wholeRows(page)
  assert.match(page.url(), /view=book&source=polymarket/)
  const market = new URLSearchParams(new URL(page.url()).hash).get('market') ?? ''
  const rows = await snapshots(`source=polymarket&market=${market}&date=2026-07-03&interval=60`)
  assert.equal(count, rows.length)
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})

test('nothing is animated with prefers-reduced-motion', { skip }, async () => {
  const options = { reducedMotion: 'reduce' } as const
  const { page } = await openExplorer(chromium.browser, file.service.url, '#view=book', options)
  const animations = (): Promise<number> => page.evaluate('document.getAnimations().length')
  assert.equal(await animations(), 0)
  await wholeRows(page)
  assert.equal(await animations(), 0)
  assert.ok(await page.evaluate<boolean>(`matchMedia('(prefers-reduced-motion: reduce)').matches`))
  await leaveExplorer(page)
})

test('the calendar offers only the recorded days', { skip }, async () => {
  const { page, faults } = await open(EVENT)
  await wholeRows(page)
  await page.getByRole('button', { name: '2026-07-02', exact: true }).click()
  const days = page.locator('.calendar td button')
  assert.equal(await days.count(), 31)
  assert.deepEqual(await page.locator('.calendar td button:enabled').allInnerTexts(), ['1', '2', '3'])
  await page.locator('.calendar td [aria-label="2026-07-02"][title="degraded"]').waitFor()
  await page.getByRole('button', { name: '2026-07-01', exact: true }).click()
  await wholeRows(page)
  assert.match(page.url(), /event=KXHIGHCHI-26JUL01&.*date=2026-07-01/)
  assert.deepEqual(faults, [])
  await leaveExplorer(page)
})
